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
	if err = fill(file); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
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
