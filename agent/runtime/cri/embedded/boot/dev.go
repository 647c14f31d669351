package boot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const cgroupRoot = "/sys/fs/cgroup"

// standardDevices are present in every container, by OCI's rules.
func standardDevices() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}
}

// openDevices takes the host's nodes as bind mounts: a bind mount of a node works where mknod'ed nodes do not, so
// the rest of the container can be nodev.
func openDevices(spec *Spec, trees map[string]tree) error {
	if spec.makesNodes() {
		return nil // populateDev does
	}
	if spec.Privileged {
		spec.Devices = hostDevices()
	}
	for _, name := range standardDevices() {
		if err := openDevice(name, name, trees); err != nil {
			return err
		}
	}
	for _, device := range spec.Devices {
		if err := openDevice(device.HostPath, device.ContainerPath, trees); err != nil {
			return err
		}
	}
	return nil
}

func openDevice(host, container string, trees map[string]tree) error {
	opened, err := openNode(host)
	if err != nil {
		return fmt.Errorf("device %s: %w", host, err)
	}
	trees[container] = opened
	return nil
}

// openNode takes a node of the host's through a read-only mount: reading from the device and writing to it work as ever,
// but its mode, owner and times, which are the host's, cannot be changed.
func openNode(name string) (tree, error) {
	opened, err := openTree(name)
	if err != nil {
		return tree{}, err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(opened.FD, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		unix.Close(opened.FD)
		return tree{}, err
	}
	return opened, nil
}

var errNotNull = errors.New("/dev/null is not the null device")

// openNullTree takes the /dev/null that this process sees. Call it only where that is the host's.
func openNullTree() (tree, error) {
	null, err := openNode("/dev/null")
	if err != nil {
		return tree{}, fmt.Errorf("/dev/null: %w", err)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(null.FD, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFCHR || stat.Rdev != unix.Mkdev(1, 3) {
		unix.Close(null.FD)
		return tree{}, errNotNull
	}
	return null, nil
}

// OpenNull opens the host's /dev/null for the standard streams of a container, which may not change its mode or owner. The
// caller is in the host's mount namespace.
func OpenNull() (*os.File, error) {
	null, err := openNullTree()
	if err != nil {
		return nil, err
	}
	defer unix.Close(null.FD)
	fd, err := unix.Open(handle(null.FD), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/null: %w", err)
	}
	return os.NewFile(uintptr(fd), "/dev/null"), nil
}

func populateDev(root rootDir, spec *Spec, trees map[string]tree) error {
	var err error
	if spec.makesNodes() {
		err = copyHostDevices(root)
	} else {
		err = placeDevices(root, spec, trees)
	}
	if err != nil {
		return err
	}
	dev, err := root.openDir("/dev")
	if err != nil {
		return fmt.Errorf("populate /dev: %w", err)
	}
	defer unix.Close(dev)
	links := map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1",
		"stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx"}
	for name, to := range links {
		if err := unix.Symlinkat(to, dev, name); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("link /dev/%s: %w", name, err)
		}
	}
	return nil
}

func placeDevices(root rootDir, spec *Spec, trees map[string]tree) error {
	names := standardDevices()
	for _, device := range spec.Devices {
		names = append(names, device.ContainerPath)
	}
	for _, name := range names {
		if err := place(root, trees[name], name); err != nil {
			return fmt.Errorf("device %s: %w", name, err)
		}
	}
	return nil
}

// makesNodes: a privileged container has nodes of its own of all the host's devices; users of a user namespace cannot make any.
func (s *Spec) makesNodes() bool { return s.Privileged && s.Users == nil }

// hostDevices are those that are not in every container anyway.
func hostDevices() (devices []Device) {
	_ = walkHostDevices(func(name string) error { // which fails only if this does
		if !slices.Contains(standardDevices(), name) {
			devices = append(devices, Device{HostPath: name, ContainerPath: name})
		}
		return nil
	})
	return devices
}

// copyHostDevices remakes every node of the host's /dev for a privileged container.
func copyHostDevices(root rootDir) error {
	return walkHostDevices(func(name string) error { return copyDevice(root, name) })
}

func walkHostDevices(visit func(name string) error) error {
	return filepath.WalkDir("/dev", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // devices come and go; what vanished need not be copied
		}
		if entry.IsDir() {
			if base := strings.TrimPrefix(name, "/dev/"); base == "pts" || base == "shm" || base == "mqueue" || base == "fd" {
				return filepath.SkipDir
			}
			return nil
		}
		if entry.Type()&os.ModeDevice == 0 || name == "/dev/ptmx" || name == "/dev/console" {
			return nil
		}
		return visit(name)
	})
}

func copyDevice(root rootDir, name string) error {
	var stat unix.Stat_t
	if err := unix.Lstat(name, &stat); err != nil {
		return nil // vanished since it was listed
	}
	dir, err := root.openDir(filepath.Dir(name))
	if err != nil {
		return fmt.Errorf("device %s: %w", name, err)
	}
	defer unix.Close(dir)
	if err := unix.Mknodat(dir, filepath.Base(name), stat.Mode, int(stat.Rdev)); err != nil {
		return fmt.Errorf("device %s: %w", name, err)
	}
	return unix.Fchmodat(dir, filepath.Base(name), stat.Mode&0o777, 0)
}

// mountCgroups shows the container its own controllers (v1); on v2 the cgroup namespace does that.
func mountCgroups(root rootDir, spec *Spec, trees map[string]tree) error {
	for controller := range spec.Cgroup.Mounts {
		target := cgroupRoot + "/" + controller
		source := trees[target]
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_NODEV}
		if !spec.Privileged {
			attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
		}
		if err := unix.MountSetattr(source.FD, "", unix.AT_EMPTY_PATH, &attr); err != nil {
			return fmt.Errorf("cgroup %s: %w", controller, err)
		}
		if err := place(root, source, target); err != nil {
			return fmt.Errorf("cgroup %s: %w", controller, err)
		}
	}
	return nil
}
