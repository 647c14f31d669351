package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// partSuffix is what the name of a file ends in until it is whole.
const partSuffix = ".tmp"

// WriteFile puts a file with these bytes and these rights at path, in the place of one that is there.
// Two writers of one path need a lock of their own.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	return Replace(path+partSuffix, path, mode, func(file *os.File) error {
		_, err := file.Write(data)
		return err
	})
}

// Replace has fill write a file at part, which is made anew, and gives it the name path when it is whole. Both are in one folder, which
// exists. The file is also readable, for a fill that looks at what it wrote. If anything fails, what was at path stays.
func Replace(part, path string, mode fs.FileMode, fill func(*os.File) error) error {
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // what an earlier process has left, or somebody's link
	}
	file, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_RDWR, mode)
	if err != nil {
		return err
	}
	return finish(file, path, fill, func() error { return nil })
}

// ReplaceIf is Replace with a part whose name nobody else has, in a folder where other people's files are: none is removed. It fails with
// what may returns, which is asked when the file is whole, just before it gets its name. The file can be read by its owner alone. A
// process that is killed leaves its part.
func ReplaceIf(may func() error, path string, fill func(*os.File) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*"+partSuffix)
	if err != nil {
		return err
	}
	return finish(file, path, fill, may)
}

// finish fills a file and names it path, or removes it.
func finish(file *os.File, path string, fill func(*os.File) error, may func() error) (err error) {
	if err = fill(file); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = may()
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return SyncFolder(filepath.Dir(path))
}

// SyncFolder returns when what was made, renamed or removed in a folder survives a power cut.
func SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// MkdirAll is os.MkdirAll, and returns when the folders that it has made survive a power cut.
func MkdirAll(path string, mode fs.FileMode) error { return mkdirAll(path, mode, SyncFolder) }

func mkdirAll(path string, mode fs.FileMode, syncFolder func(path string) error) error {
	var parents []string // of folders that are missing
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		parents = append(parents, filepath.Dir(at))
	}
	if err := os.MkdirAll(path, mode); err != nil {
		return err
	}
	for _, parent := range parents {
		if err := syncFolder(parent); err != nil {
			return err
		}
	}
	return nil
}
