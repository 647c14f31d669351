package selinux

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	lib "github.com/opencontainers/selinux/go-selinux"
	"golang.org/x/sys/unix"
)

// attribute is where a file has its label.
const attribute = "security.selinux"

// Relabel gives a label to a volume and to everything in it, so that containers with that label may use it. An empty label changes
// nothing, and a file system that keeps no labels of single files stays as it is.
//
// Programs may be changing the volume: no link is followed, what is gone by now is left out, and so is what is mounted below.
func Relabel(volume, label string) error {
	if label == "" {
		return nil
	}
	top, err := filepath.EvalSymlinks(volume)
	if err != nil {
		return fmt.Errorf("relabel volume: %w", err)
	}
	err = lib.Chcon(top, label, false) // which refuses folders of the machine, such as /etc
	if errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	if err == nil {
		err = relabelBelow(top, label)
	}
	if err != nil {
		return fmt.Errorf("relabel volume: %w", err)
	}
	return nil
}

func relabelBelow(top, label string) error {
	folder, err := unix.Open(top, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOTDIR) {
		return nil // a file, which has its label
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: top, Err: err}
	}
	defer unix.Close(folder)
	root, err := os.OpenRoot(top)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && path != "." {
			err = relabelOne(folder, path, label)
		}
		switch {
		case errors.Is(err, unix.EXDEV) && entry.IsDir():
			return fs.SkipDir
		case changed(err), errors.Is(err, unix.EXDEV):
			return nil
		}
		return err
	})
}

// changed: another file is there now, or none.
func changed(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// relabelOne finds a file of the folder by its path, which other programs may have put links into.
func relabelOne(folder int, path, label string) error {
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
	}
	fd, err := unix.Openat2(folder, path, &how)
	for errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) { // a rename raced with the walk
		fd, err = unix.Openat2(folder, path, &how)
	}
	if err != nil {
		return &fs.PathError{Op: "openat2", Path: path, Err: err}
	}
	defer unix.Close(fd)
	found := fmt.Sprintf("/proc/self/fd/%d", fd)
	if has, err := lib.FileLabel(found); err == nil && has == label {
		return nil
	}
	return lib.SetFileLabel(found, label)
}
