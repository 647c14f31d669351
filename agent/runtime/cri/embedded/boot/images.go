package boot

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// openImages makes trees of the images that are mounted as volumes (KEP-4639): nothing in them can be changed or
// executed. It comes after the host's mounts were detached, so that the host never sees them.
func openImages(spec *Spec, trees map[string]tree) error {
	for i := range spec.Mounts {
		mount := &spec.Mounts[i]
		if mount.Type != "image" {
			continue
		}
		opened, err := openImage(spec, mount)
		if err != nil {
			return fmt.Errorf("image volume at %s: %w", mount.Target, err)
		}
		trees[mount.Target] = opened
	}
	return nil
}

func openImage(spec *Spec, mount *Mount) (tree, error) {
	if err := os.Chdir(spec.Rootfs.LowerBase); err != nil {
		return tree{}, fmt.Errorf("image layers: %w", err)
	}
	var lowers []string
	for _, lower := range append(mount.Lowers[:len(mount.Lowers):len(mount.Lowers)], mount.Source) { // an overlay needs two
		lowers = append(lowers, overlayEscaper.Replace(lower))
	}
	const flags = unix.MS_RDONLY | unix.MS_NODEV | unix.MS_NOSUID | unix.MS_NOEXEC
	options := Labelled("lowerdir="+strings.Join(lowers, ":"), spec.Label)
	if err := mountOverlay(mount.Source, flags, options); err != nil {
		return tree{}, fmt.Errorf("mount layers: %w", err)
	}
	defer func() { _ = unix.Unmount(mount.Source, unix.MNT_DETACH) }() // the tree below is a mount of its own
	root, err := unix.Open(mount.Source, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return tree{}, err
	}
	defer unix.Close(root)
	// Links of the image lead to what is in the image.
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	at, err := unix.Openat2(root, "./"+mount.SubPath, &how)
	if err != nil {
		return tree{}, &os.PathError{Op: "open", Path: mount.SubPath, Err: err}
	}
	defer unix.Close(at)
	fd, err := unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return tree{}, fmt.Errorf("copy the mount: %w", err)
	}
	return describe(fd)
}
