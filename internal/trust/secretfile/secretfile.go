package secretfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/setpoint-io/setpoint/internal/durable"
)

const (
	Secret fs.FileMode = 0o600
	Public fs.FileMode = 0o644
	Folder fs.FileMode = 0o700
)

// Write replaces a file atomically: after a crash it has its old or its new content.
// Where the file was somebody else's, it stays his if this process may give files away.
func Write(path string, content []byte, mode fs.FileMode) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, cause(err))
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, errors.Join(cause(err), os.Remove(file.Name())))
		}
	}()
	if err := fill(file, content, mode); err != nil {
		return errors.Join(err, file.Close())
	}
	keepOwner(path, file)
	if err := file.Close(); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	SyncFolder(filepath.Dir(path))
	return nil
}

// cause is an error without the name of the temporary file, which is another one each time: what is tried again fails in the same words.
func cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", at.Op, at.Err)
	}
	if between, ok := errors.AsType[*os.LinkError](err); ok {
		return fmt.Errorf("%s: %w", between.Op, between.Err)
	}
	return err
}

func keepOwner(path string, file *os.File) {
	if former, err := os.Stat(path); err == nil {
		if owner, ok := former.Sys().(*syscall.Stat_t); ok {
			_ = file.Chown(int(owner.Uid), int(owner.Gid)) // refused unless root: the file is ours then
		}
	}
}

func fill(file *os.File, content []byte, mode fs.FileMode) error {
	if err := file.Chmod(mode); err != nil {
		return err
	}
	if _, err := file.Write(content); err != nil {
		return err
	}
	return file.Sync()
}

// SyncFolder makes a rename durable where the file system can; one that cannot sync folders is no error.
func SyncFolder(path string) {
	_ = durable.SyncFolder(path)
}

// ReadOrMake returns the content of a file, making it first when it is missing.
func ReadOrMake(path string, mode fs.FileMode, produce func() ([]byte, error)) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return content, err
	}
	if content, err = produce(); err != nil {
		return nil, err
	}
	return content, Write(path, content, mode)
}
