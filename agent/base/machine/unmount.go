package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Resolve is path without links, as far as it exists: that is how the kernel names what is mounted there.
func Resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, os.ErrNotExist) || path == "/" {
		return resolved, err
	}
	parent, err := Resolve(filepath.Dir(path))
	return filepath.Join(parent, filepath.Base(path)), err
}

// Below tells whether path is dir or in it. Both must be resolved.
func Below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// MountsBelow are the places at and below dir, resolved, at which something is mounted; what was mounted
// last comes first.
func MountsBelow(dir string) ([]string, error) {
	mounts, err := readMounts("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, m := range mounts {
		if Below(m.path, dir) {
			found = append(found, m.path)
		}
	}
	slices.Reverse(found)
	return found, nil
}

// UnmountBelow takes away all that is mounted below dir, also what is in use, and returns where it was.
func UnmountBelow(dir string) (unmounted []string, err error) {
	mounts, err := MountsBelow(dir)
	if err != nil {
		return nil, err
	}
	for _, path := range mounts {
		if path == dir {
			continue
		}
		switch failed := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); {
		case failed == nil:
			unmounted = append(unmounted, path)
		case !errors.Is(failed, unix.EINVAL): // it is gone, with what was mounted around it
			err = errors.Join(err, fmt.Errorf("unmount %s: %w", path, failed))
		}
	}
	return unmounted, err
}
