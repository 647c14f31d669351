package backup

import (
	"errors"
	"os"
	"path/filepath"
)

// fileMode lets nobody else read what Secrets may be in.
const fileMode = 0o600

// ToFile has fill write an archive into the file part, which is made anew, and gives it its name when it is whole and on the disk. Both
// are in one folder. If anything fails there is no file but those that were there.
func ToFile(part, path string, fill func(*os.File) error) error {
	if err := os.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // what an earlier process has left, or somebody's link
	}
	file, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_RDWR, fileMode)
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
	return syncFolder(filepath.Dir(path))
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
