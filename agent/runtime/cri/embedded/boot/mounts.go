package boot

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrOverlayOnOverlay explains the one EINVAL that users meet: a data directory inside a container's own overlay root.
var ErrOverlayOnOverlay = errors.New("the file system of the data directory cannot hold an overlay: " +
	"put it on a real disk or a volume, not on a container's own root file system")

// tree is a detached copy of a host mount, taken while the host's paths are still visible.
type tree struct {
	FD    int
	IsDir bool
}

// openSources opens what is to be mounted at each target and is there already.
func openSources(spec *Spec) (map[string]tree, error) {
	trees := map[string]tree{}
	for _, mount := range spec.Mounts {
		if mount.Type != "bind" {
			continue
		}
		opened, err := openSource(spec, mount)
		if err != nil {
			return nil, fmt.Errorf("mount source %s: %w", mount.Source, err)
		}
		trees[mount.Target] = opened
	}
	for controller, dir := range spec.Cgroup.Mounts {
		opened, err := openTree(dir)
		if err != nil {
			return nil, fmt.Errorf("cgroup %s: %w", controller, err)
		}
		trees[cgroupRoot+"/"+controller] = opened
	}
	return trees, openDevices(spec, trees)
}

func openSource(spec *Spec, mount Mount) (tree, error) {
	opened, err := openTree(mount.Source)
	if err != nil {
		return tree{}, err
	}
	if spec.Users != nil {
		if err := mapIDs(opened.FD, spec.Users); err != nil {
			return tree{}, err
		}
	}
	return opened, setAttributes(opened.FD, mount, spec.Privileged)
}

func openTree(source string) (tree, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return tree{}, err
	}
	return describe(fd)
}

func describe(fd int) (tree, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		unix.Close(fd)
		return tree{}, err
	}
	return tree{FD: fd, IsDir: stat.Mode&unix.S_IFMT == unix.S_IFDIR}, nil
}

func setAttributes(fd int, mount Mount, privileged bool) error {
	if err := setPropagation(fd, mount.Propagation); err != nil {
		return err
	}
	if !privileged {
		// A node that is made in a volume, or in one mounted below it, cannot be opened.
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NODEV}
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
			return err
		}
	}
	if !mount.Readonly {
		return nil
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	var flags uint = unix.AT_EMPTY_PATH
	if mount.RecursiveReadonly {
		flags |= unix.AT_RECURSIVE
	}
	return unix.MountSetattr(fd, "", flags, &attr)
}

func setPropagation(fd int, propagation string) error {
	attr := unix.MountAttr{Propagation: unix.MS_PRIVATE}
	switch propagation {
	case PropagationShared:
		return nil // the copy is already in its source's peer group
	case PropagationSlave:
		attr.Propagation = unix.MS_SLAVE
	}
	return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr)
}

// overlayEscaper writes a path as an option of overlayfs: a comma ends an option, a colon a layer
// (Documentation/filesystems/overlayfs.rst).
var overlayEscaper = strings.NewReplacer(`\`, `\\`, `:`, `\:`, `,`, `\,`)

// mountRoot mounts the overlay. Device nodes are dead in it unless the container is privileged.
func mountRoot(spec *Spec) (rootDir, error) {
	rootfs := spec.Rootfs
	if err := os.Chdir(rootfs.LowerBase); err != nil {
		return 0, fmt.Errorf("image layers: %w", err)
	}
	var flags uintptr
	if !spec.Privileged {
		flags = unix.MS_NODEV
	}
	var lowers []string
	for _, lower := range rootfs.Lowers {
		lowers = append(lowers, overlayEscaper.Replace(lower))
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", strings.Join(lowers, ":"),
		overlayEscaper.Replace(rootfs.Upper), overlayEscaper.Replace(rootfs.Work))
	err := mountOverlay(rootfs.Target, flags, Labelled(options, spec.Label))
	if errors.Is(err, unix.EINVAL) {
		return 0, fmt.Errorf("mount root file system: %w (%w)", ErrOverlayOnOverlay, err)
	}
	if err != nil {
		return 0, fmt.Errorf("mount root file system: %w", err)
	}
	fd, err := unix.Open(rootfs.Target, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return rootDir(fd), err
}

// mountOverlay refuses options of which the kernel would take the beginning only.
func mountOverlay(target string, flags uintptr, options string) error {
	if len(options) >= os.Getpagesize() {
		return fmt.Errorf("the names of layers and folders: %w", unix.ENAMETOOLONG)
	}
	return unix.Mount("overlay", target, "overlay", flags, options)
}

// mountAll mounts parents before children, whatever order the caller chose.
func mountAll(root rootDir, spec *Spec, trees map[string]tree) error {
	mounts := slices.Clone(spec.Mounts)
	slices.SortStableFunc(mounts, func(a, b Mount) int { return depth(a.Target) - depth(b.Target) })
	for _, mount := range mounts {
		if err := mountOne(root, mount, spec.Label, trees); err != nil {
			return fmt.Errorf("mount %s at %s: %w", mount.Type, mount.Target, err)
		}
		if mount.Target == "/dev" && mount.Type == "tmpfs" {
			if err := populateDev(root, spec, trees); err != nil {
				return err
			}
		}
		if mount.Target == cgroupRoot && mount.Type == "tmpfs" {
			if err := mountCgroups(root, spec, trees); err != nil {
				return err
			}
		}
	}
	return nil
}

func depth(target string) int { return strings.Count(strings.Trim(target, "/"), "/") }

func mountOne(root rootDir, mount Mount, label string, trees map[string]tree) error {
	if err := checkKernelTree(root, mount, trees); err != nil {
		return err
	}
	if source, ok := trees[mount.Target]; ok {
		return place(root, source, mount.Target)
	}
	target, err := root.openDir(mount.Target)
	if err != nil {
		return err
	}
	defer unix.Close(target)
	if err := unix.Mount(mount.Source, handle(target), mount.Type, mount.Flags, optionsOf(mount, label)); err != nil {
		return err
	}
	return labelQueues(root, mount, label)
}

// place moves a detached tree to target, which is created as a file or directory to match.
func place(root rootDir, source tree, target string) error {
	open := root.openFile
	if source.IsDir {
		open = root.openDir
	}
	fd, err := open(target)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := checkNotProc(fd, target); err != nil {
		return err
	}
	return unix.MoveMount(source.FD, "", fd, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}
