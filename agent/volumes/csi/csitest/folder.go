package csitest

import (
	"os"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
)

// Folder is a Mounter whose volumes are this folder, mounted where pods have it.
type Folder string

var _ Mounter = Folder("")

// Publish mounts the folder.
func (f Folder) Publish(r *spec.NodePublishVolumeRequest) error {
	if err := os.MkdirAll(r.TargetPath, 0o750); err != nil {
		return err
	}
	return unix.Mount(string(f), r.TargetPath, "", unix.MS_BIND, "")
}

// Unpublish takes the mount away.
func (f Folder) Unpublish(r *spec.NodeUnpublishVolumeRequest) error {
	if err := unix.Unmount(r.TargetPath, 0); err != nil {
		return err
	}
	return os.Remove(r.TargetPath)
}
