package csi

import (
	"slices"
	"strconv"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// capability is how a volume is to be used. Only file systems have options and a group.
func (t *task) capability() *spec.VolumeCapability {
	c := &spec.VolumeCapability{AccessMode: &spec.VolumeCapability_AccessMode{Mode: t.accessMode()}}
	if t.paths.block {
		c.AccessType = &spec.VolumeCapability_Block{Block: &spec.VolumeCapability_BlockVolume{}}
		return c
	}
	mount := &spec.VolumeCapability_MountVolume{FsType: t.source.fsType, MountFlags: t.mountOptions()}
	if group := fsGroup(t.Pod); group != nil && t.can(spec.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP) {
		mount.VolumeMountGroup = strconv.FormatInt(*group, 10)
	}
	c.AccessType = &spec.VolumeCapability_Mount{Mount: mount}
	return c
}

// accessMode is the first that the volume has, as upstream's. Drivers that know ReadWriteOncePod are told of it.
func (t *task) accessMode() spec.VolumeCapability_AccessMode_Mode {
	mode := corev1.ReadWriteOnce
	if len(t.source.access) > 0 {
		mode = t.source.access[0]
	}
	exact := t.can(spec.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER)
	switch {
	case mode == corev1.ReadOnlyMany:
		return spec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	case mode == corev1.ReadWriteMany:
		return spec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	case mode == corev1.ReadWriteOncePod && exact:
		return spec.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
	case exact:
		return spec.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
	}
	return spec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
}

func fsGroup(pod *corev1.Pod) *int64 {
	if pod.Spec.SecurityContext == nil {
		return nil
	}
	return pod.Spec.SecurityContext.FSGroup
}

// givesGroup tells whether the agent gives the files to the pod's fsGroup, by the driver's policy.
func (t *task) givesGroup() bool {
	switch {
	case t.paths.block || t.source.readOnly || fsGroup(t.Pod) == nil, t.can(spec.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP):
		return false
	case t.info.group == storagev1.NoneFSGroupPolicy:
		return false
	case t.info.group == storagev1.FileFSGroupPolicy:
		return true
	case t.source.fsType == "":
		return false
	}
	return t.paths.inline || slices.Contains(t.source.access, corev1.ReadWriteOnce) ||
		slices.Contains(t.source.access, corev1.ReadWriteOncePod)
}
