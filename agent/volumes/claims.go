package volumes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/setpoint-io/setpoint/agent/volumes/csi"
	"github.com/setpoint-io/setpoint/internal/localvolume"
)

// Local holds volumes on this node's disk.
type Local interface {
	// Folder is where the files of a volume are.
	Folder(handle string) (string, error)
	// Use makes the block device of a volume. note keeps on disk that it is used, before it is.
	Use(handle string, note func() error) (device string, err error)
	// Release gives a block device back unless used says that somebody has it.
	Release(handle string, used func() (bool, error)) error
}

// claim makes ready the volume of a claim: its files, or its block device.
func (m *Manager) claim(ctx context.Context, in Input, v *corev1.Volume, name string) (Place, error) {
	var owner *corev1.Pod
	if v.Ephemeral != nil { // the claim must have been made for the pod
		owner = in.Pod
	}
	pv, err := m.Objects.Volume(ctx, in.Pod.Namespace, name, owner)
	if err != nil {
		return Place{}, err
	}
	if err := m.mayUse(in.Pod, v, pv); err != nil {
		return Place{}, err
	}
	if m.hasDriver(pv) {
		readOnly := v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly
		return m.byDriver(ctx, in, v, csi.Volume{PV: pv, ReadOnly: readOnly})
	}
	if isBlock(pv) {
		path, err := m.device(in.Pod, v, pv)
		return Place{Path: path}, err
	}
	path, owned, err := m.folder(pv)
	place := Place{path, owned && !readOnlySource(in.Pod, v.Name)}
	if err != nil || !place.Relabel || !in.Setup {
		return place, err
	}
	return place, m.setGroup(ctx, in.Pod, path)
}

// mayUse: the scheduler saw to both, but a pod may have named its node itself.
func (m *Manager) mayUse(pod *corev1.Pod, v *corev1.Volume, pv *corev1.PersistentVolume) error {
	if m.Node != nil && pv.Spec.NodeAffinity != nil {
		node := m.Node()
		if node == nil {
			return errors.New("the labels of this node are not known yet")
		}
		if err := volume.CheckNodeAffinity(pv, node.Labels); err != nil {
			return fmt.Errorf("storage node affinity check failed for volume %q: %w", pv.Name, err)
		}
	}
	mounted, device := uses(pod, v.Name)
	switch {
	case isBlock(pv) && mounted:
		return fmt.Errorf("volume %s has volumeMode Block, but is specified in volumeMounts", v.Name)
	case !isBlock(pv) && device:
		return fmt.Errorf("volume %s has volumeMode Filesystem, but is specified in volumeDevices", v.Name)
	}
	return nil
}

func isBlock(pv *corev1.PersistentVolume) bool {
	return pv.Spec.VolumeMode != nil && *pv.Spec.VolumeMode == corev1.PersistentVolumeBlock
}

// uses tells how the containers of a pod use a volume.
func uses(pod *corev1.Pod, name string) (mounted, device bool) {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			c := &containers[i]
			mounted = mounted || slices.ContainsFunc(c.VolumeMounts, func(vm corev1.VolumeMount) bool { return vm.Name == name })
			device = device || slices.ContainsFunc(c.VolumeDevices, func(d corev1.VolumeDevice) bool { return d.Name == name })
		}
	}
	return mounted, device
}

// folder is where the files of a persistent volume are. Those of a hostPath keep their owner and label, as with a kubelet.
func (m *Manager) folder(pv *corev1.PersistentVolume) (path string, owned bool, err error) {
	switch {
	case pv.Spec.HostPath != nil:
		return pv.Spec.HostPath.Path, false, checkHostPath(pv.Spec.HostPath)
	case pv.Spec.Local != nil:
		return pv.Spec.Local.Path, true, checkLocal(pv.Spec.Local.Path)
	case m.isLocal(pv):
		path, err := m.Local.Folder(pv.Spec.CSI.VolumeHandle)
		return path, true, err
	default:
		return "", false, unsupported(pv)
	}
}

// isLocal tells whether a volume is of the class setpoint-local.
func (m *Manager) isLocal(pv *corev1.PersistentVolume) bool {
	return m.Local != nil && pv.Spec.CSI != nil && pv.Spec.CSI.Driver == localvolume.Driver
}

func unsupported(pv *corev1.PersistentVolume) error {
	return fmt.Errorf("persistent volume %s: %w", pv.Name, ErrUnsupported)
}

// checkLocal: a missing disk must not become an empty folder.
func checkLocal(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("path %q does not exist", path)
	}
	if err == nil && !info.IsDir() {
		return fmt.Errorf("path %q is not a folder: mount the file system of a device first, or set volumeMode to Block", path)
	}
	return err
}
