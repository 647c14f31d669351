package boot

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// hideHost hides what a container must not read, then seals what it must not write. It runs while /dev/null is still the
// host's: the container's own may be anything, and what lies over a masked path is what the container opens there.
func hideHost(root rootDir, spec *Spec) error {
	for _, name := range spec.MaskedPaths {
		if err := mask(root, name, spec.Label); err != nil {
			return fmt.Errorf("mask %s: %w", name, err)
		}
	}
	for _, name := range spec.ReadonlyPaths {
		if err := seal(root, name); err != nil {
			return fmt.Errorf("make %s read-only: %w", name, err)
		}
	}
	return nil
}

// mask covers a file with /dev/null and a directory with an empty read-only tmpfs.
func mask(root rootDir, name, label string) error {
	target, err := openTarget(root, name)
	if err != nil || target.FD < 0 {
		return err
	}
	defer unix.Close(target.FD)
	if target.IsDir {
		const flags = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
		return unix.Mount("tmpfs", handle(target.FD), "tmpfs", flags, Labelled("size=0k", label))
	}
	null, err := openNullTree()
	if err != nil {
		return err
	}
	defer unix.Close(null.FD)
	return unix.MoveMount(null.FD, "", target.FD, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

func seal(root rootDir, name string) error {
	target, err := openTarget(root, name)
	if err != nil || target.FD < 0 {
		return err
	}
	defer unix.Close(target.FD)
	sealed, err := unix.OpenTree(target.FD, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	defer unix.Close(sealed)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(sealed, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return err
	}
	return unix.MoveMount(sealed, "", target.FD, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// openTarget finds what is to be covered; fd is -1 when there is no such file.
func openTarget(root rootDir, name string) (tree, error) {
	fd, err := root.open(name, unix.O_PATH)
	if errors.Is(err, unix.ENOENT) {
		return tree{FD: -1}, nil
	}
	if err != nil {
		return tree{}, err
	}
	return describe(fd)
}

// finishRoot runs inside the new root.
func finishRoot(spec *Spec) error {
	if err := ensureCwd(spec.Process.Cwd); err != nil {
		return err
	}
	if !spec.Rootfs.Readonly {
		return nil
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, &attr); err != nil {
		return fmt.Errorf("make root read-only: %w", err)
	}
	return nil
}

func ensureCwd(name string) error {
	if name == "" {
		return nil
	}
	if err := os.MkdirAll(name, directoryMode); err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	return nil
}
