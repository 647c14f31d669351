package volumes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// devicesDir holds, in a pod's folder, one link for each block volume of the class setpoint-local that the pod uses: its name is
// the pod's for the volume, its target the volume's handle.
const devicesDir = "volumeDevices"

// Devices are the block volumes of a container.
func (m *Manager) Devices(in MountInput) ([]*runtimeapi.Device, error) {
	var out []*runtimeapi.Device
	for _, d := range in.Container.VolumeDevices {
		place, ok := in.Places[d.Name]
		if !ok {
			return nil, fmt.Errorf("cannot find volume %q to pass into container %q", d.Name, in.Container.Name)
		}
		permissions := "mrw"
		if readOnlySource(in.Pod, d.Name) {
			permissions = "r"
		}
		out = append(out, &runtimeapi.Device{ContainerPath: d.DevicePath, HostPath: place.Path, Permissions: permissions})
	}
	return out, nil
}

// device is the path of a volume that is a block device.
func (m *Manager) device(pod *corev1.Pod, v *corev1.Volume, pv *corev1.PersistentVolume) (string, error) {
	switch {
	case pv.Spec.Local != nil:
		return pv.Spec.Local.Path, checkDevice(pv.Spec.Local.Path)
	case m.isLocal(pv):
		handle := pv.Spec.CSI.VolumeHandle
		return m.Local.Use(handle, func() error { return m.noteDevice(pod, v.Name, handle) })
	default:
		return "", unsupported(pv)
	}
}

func checkDevice(path string) error {
	info, err := os.Stat(path)
	if err == nil && !matchesType(info.Mode(), corev1.HostPathBlockDev) {
		return fmt.Errorf("path %q is not a block device", path)
	}
	return err
}

// noteDevice keeps which volume a pod has. What is there is of an earlier try.
func (m *Manager) noteDevice(pod *corev1.Pod, name, handle string) error {
	dir := filepath.Join(m.Dirs.Pod(pod), devicesDir)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	err := os.Symlink(handle, filepath.Join(dir, name))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// releaseDevices gives back what the pod in dir has, and forgets it after that.
func (m *Manager) releaseDevices(dir string) error {
	links, err := filepath.Glob(filepath.Join(dir, devicesDir, "*"))
	if err != nil || len(links) == 0 || m.Local == nil {
		return err
	}
	for _, link := range links {
		handle, err := os.Readlink(link)
		if errors.Is(err, unix.EINVAL) { // the folder of CSI drivers
			continue
		}
		if err != nil {
			return err
		}
		if err := m.Local.Release(handle, func() (bool, error) { return usedElsewhere(dir, handle) }); err != nil {
			return err
		}
	}
	return nil
}

// usedElsewhere tells whether a pod other than the one in dir has the volume.
func usedElsewhere(dir, handle string) (bool, error) {
	links, err := filepath.Glob(filepath.Join(filepath.Dir(dir), "*", devicesDir, "*"))
	for _, link := range links {
		if filepath.Dir(filepath.Dir(link)) == dir {
			continue
		}
		if other, err := os.Readlink(link); err == nil && other == handle {
			return true, nil
		}
	}
	return false, err
}
