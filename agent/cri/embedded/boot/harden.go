package boot

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// hardenRoot runs inside the new root: hides what a container must not read, then seals what it must not write.
func hardenRoot(spec *Spec) error {
	if err := ensureCwd(spec.Process.Cwd); err != nil {
		return err
	}
	for _, name := range spec.MaskedPaths {
		if err := mask(name); err != nil {
			return fmt.Errorf("mask %s: %w", name, err)
		}
	}
	for _, name := range spec.ReadonlyPaths {
		if err := seal(name); err != nil {
			return fmt.Errorf("make %s read-only: %w", name, err)
		}
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

// mask covers a file with /dev/null and a directory with an empty read-only tmpfs.
func mask(name string) error {
	err := unix.Mount("/dev/null", name, "", unix.MS_BIND, "")
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if errors.Is(err, unix.ENOTDIR) {
		return unix.Mount("tmpfs", name, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=0k")
	}
	return err
}

func seal(name string) error {
	opened, err := openTree(name)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(opened.fd)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(opened.fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return err
	}
	return unix.MoveMount(opened.fd, "", unix.AT_FDCWD, name, unix.MOVE_MOUNT_F_EMPTY_PATH)
}
