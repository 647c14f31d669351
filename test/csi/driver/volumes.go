package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/kubernetes/test/e2e/storage/drivers/csi-test/mock/service"
)

// volumes are upstream's mock, and below dir a folder, or a file for a loop device, for each volume.
type volumes struct {
	service.Service
	dir string
}

func newVolumes(dir string) volumes {
	return volumes{dir: dir, Service: service.New(service.Config{
		DriverName: name, NodeExpansionRequired: true, PermissiveTargetPath: true, IO: noFolders{}})}
}

// noFolders leaves the paths of pods to us.
type noFolders struct{}

func (noFolders) DirExists(string) (bool, error) { return true, nil }
func (noFolders) Mkdir(string) error             { return nil }
func (noFolders) RemoveAll(string) error         { return nil }
func (noFolders) Rename(string, string) error    { return nil }

func (v volumes) folder(id string) string { return filepath.Join(v.dir, filepath.Base(id)) }
func (v volumes) file(id string) string   { return v.folder(id) + ".img" }

// CreateVolume copies what the new volume shall begin with.
func (v volumes) CreateVolume(ctx context.Context, r *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error) {
	made, err := v.Service.CreateVolume(ctx, r)
	if err != nil {
		return nil, err
	}
	id, size := made.Volume.VolumeId, made.Volume.CapacityBytes
	if source := r.GetVolumeContentSource().GetVolume().GetVolumeId(); source != "" {
		made.Volume.ContentSource = r.VolumeContentSource
		return made, v.copy(source, id, size)
	}
	return made, v.room(id, size)
}

// room makes what is not there yet: both forms, since the first to use a volume chooses one.
func (v volumes) room(id string, bytes int64) error {
	if err := os.MkdirAll(v.folder(id), 0o777); err != nil {
		return err
	}
	return v.grow(id, bytes)
}

func (v volumes) grow(id string, bytes int64) error {
	file, err := os.OpenFile(v.file(id), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Truncate(bytes)
}

func (v volumes) copy(source, id string, bytes int64) error {
	if _, err := os.Stat(v.folder(id)); err == nil {
		return nil
	}
	if err := command("cp", "-a", "--sparse=always", v.file(source), v.file(id)); err != nil {
		return err
	}
	if err := command("cp", "-a", v.folder(source), v.folder(id)); err != nil {
		return err
	}
	return v.grow(id, bytes)
}

// DeleteVolume removes the data, too.
func (v volumes) DeleteVolume(ctx context.Context, r *spec.DeleteVolumeRequest) (*spec.DeleteVolumeResponse, error) {
	done, err := v.Service.DeleteVolume(ctx, r)
	if err == nil {
		err = v.remove(r.VolumeId)
	}
	return done, err
}

func (v volumes) remove(id string) error {
	if err := os.RemoveAll(v.folder(id)); err != nil {
		return err
	}
	return os.RemoveAll(v.file(id))
}

// ControllerExpandVolume grows the file.
func (v volumes) ControllerExpandVolume(
	ctx context.Context, r *spec.ControllerExpandVolumeRequest,
) (*spec.ControllerExpandVolumeResponse, error) {
	done, err := v.Service.ControllerExpandVolume(ctx, r)
	if err == nil {
		err = v.grow(r.VolumeId, done.CapacityBytes)
	}
	return done, err
}

// ControllerModifyVolume refuses the parameters that a class of volume attributes must not have.
func (v volumes) ControllerModifyVolume(
	ctx context.Context, r *spec.ControllerModifyVolumeRequest,
) (*spec.ControllerModifyVolumeResponse, error) {
	for name := range r.MutableParameters {
		if name != "speed" {
			return nil, status.Errorf(codes.InvalidArgument, "volumes have no %q", name)
		}
	}
	return v.Service.ControllerModifyVolume(ctx, r)
}

// NodeExpandVolume has the loop device see that its file has grown.
func (v volumes) NodeExpandVolume(ctx context.Context, r *spec.NodeExpandVolumeRequest) (*spec.NodeExpandVolumeResponse, error) {
	done, err := v.Service.NodeExpandVolume(ctx, r)
	if err == nil && r.VolumeCapability.GetBlock() != nil {
		err = growDevice(v.file(r.VolumeId))
	}
	return done, err
}

// NodePublishVolume mounts the folder or the device. Of volumes in the spec of a pod the mock keeps no books.
func (v volumes) NodePublishVolume(ctx context.Context, r *spec.NodePublishVolumeRequest) (*spec.NodePublishVolumeResponse, error) {
	if r.GetVolumeContext()["csi.storage.k8s.io/ephemeral"] == "true" {
		if err := os.MkdirAll(v.folder(r.VolumeId), 0o777); err != nil {
			return nil, err
		}
		return &spec.NodePublishVolumeResponse{}, v.mount(r)
	}
	if _, err := v.Service.NodePublishVolume(ctx, r); err != nil && status.Code(err) != codes.AlreadyExists {
		return nil, err
	}
	return &spec.NodePublishVolumeResponse{}, v.mount(r)
}

// persistent tells a volume of the mock from one in the spec of a pod.
func (v volumes) persistent(id string) bool {
	_, err := os.Stat(v.file(id))
	return err == nil
}

func (v volumes) mount(r *spec.NodePublishVolumeRequest) error {
	if mounted(r.TargetPath) {
		return nil
	}
	if r.VolumeCapability.GetBlock() != nil {
		return mountDevice(v.file(r.VolumeId), r.TargetPath)
	}
	if err := os.MkdirAll(r.TargetPath, 0o750); err != nil {
		return err
	}
	return bind(v.folder(r.VolumeId), r.TargetPath, r.Readonly)
}

// NodeUnpublishVolume takes the mount away, and an ephemeral volume with it.
func (v volumes) NodeUnpublishVolume(ctx context.Context, r *spec.NodeUnpublishVolumeRequest) (*spec.NodeUnpublishVolumeResponse, error) {
	if mounted(r.TargetPath) {
		if err := unix.Unmount(r.TargetPath, 0); err != nil {
			return nil, err
		}
	}
	if err := os.Remove(r.TargetPath); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	if !v.persistent(r.VolumeId) {
		return &spec.NodeUnpublishVolumeResponse{}, v.remove(r.VolumeId)
	}
	return v.Service.NodeUnpublishVolume(ctx, r)
}

// NodeUnstageVolume ends the loop device, which no pod has any more.
func (v volumes) NodeUnstageVolume(ctx context.Context, r *spec.NodeUnstageVolumeRequest) (*spec.NodeUnstageVolumeResponse, error) {
	if err := releaseDevice(v.file(r.VolumeId)); err != nil {
		return nil, err
	}
	return v.Service.NodeUnstageVolume(ctx, r)
}

// NodeGetVolumeStats is what the file system says, or the size of a device.
func (v volumes) NodeGetVolumeStats(_ context.Context, r *spec.NodeGetVolumeStatsRequest) (*spec.NodeGetVolumeStatsResponse, error) {
	if device := deviceOf(v.file(r.VolumeId)); device != "" {
		info, err := os.Stat(v.file(r.VolumeId))
		if err != nil {
			return nil, status.Error(codes.NotFound, err.Error())
		}
		return &spec.NodeGetVolumeStatsResponse{Usage: []*spec.VolumeUsage{{Unit: spec.VolumeUsage_BYTES, Total: info.Size()}}}, nil
	}
	var s unix.Statfs_t
	if err := unix.Statfs(r.VolumePath, &s); err != nil {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	block := int64(s.Bsize)
	return &spec.NodeGetVolumeStatsResponse{Usage: []*spec.VolumeUsage{
		{Unit: spec.VolumeUsage_BYTES, Total: int64(s.Blocks) * block, Available: int64(s.Bavail) * block, Used: int64(s.Blocks-s.Bfree) * block},
		{Unit: spec.VolumeUsage_INODES, Total: int64(s.Files), Available: int64(s.Ffree), Used: int64(s.Files - s.Ffree)},
	}}, nil
}

func command(program string, args ...string) error {
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		return status.Errorf(codes.Internal, "%s %v: %v: %s", program, args, err, out)
	}
	return nil
}
