package volumes

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/base/hugepages"
)

func (m *Manager) emptyDir(pod *corev1.Pod, v *corev1.Volume) (string, error) {
	dir := m.dir(pod, "empty-dir", v.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := m.medium(dir, pod, v.EmptyDir); err != nil {
		return "", err
	}
	mode := os.FileMode(0o777)
	if v.EmptyDir.Medium == corev1.StorageMediumMemory {
		mode |= os.ModeSticky // as the kernel mounts a tmpfs, and a kubelet leaves it
	}
	if v.EmptyDir.Mode != nil {
		mode = os.FileMode(*v.EmptyDir.Mode)
	}
	return dir, own(dir, mode, fsGroup(pod))
}

// medium mounts on dir what the volume is made of. Both file systems of memory are full at the volume's limit.
func (m *Manager) medium(dir string, pod *corev1.Pod, v *corev1.EmptyDirVolumeSource) error {
	size := ""
	if limit := v.SizeLimit; limit != nil && limit.Value() > 0 {
		size = fmt.Sprintf(",size=%d", limit.Value())
	}
	switch {
	case v.Medium == corev1.StorageMediumDefault:
		return nil
	case v.Medium == corev1.StorageMediumMemory:
		return m.tmpfs(dir, "mode=0777"+size)
	case hugepages.IsMedium(v.Medium):
		page, err := hugepages.OfMedium(v.Medium, pod)
		if err != nil {
			return err
		}
		return m.memory(dir, "hugetlbfs", fmt.Sprintf("pagesize=%d%s", page, size))
	default:
		return fmt.Errorf("unknown storage medium %q", v.Medium)
	}
}

// tmpfs mounts one on dir unless it is there already.
func (m *Manager) tmpfs(dir, options string) error {
	return m.memory(dir, "tmpfs", m.tmpfsOptions(options))
}

func (m *Manager) tmpfsOptions(options string) string {
	return strings.Join(append([]string{options}, m.TmpfsOptions...), ",")
}

// memory mounts a file system of that kind on dir unless one is there already.
func (m *Manager) memory(dir, kind, options string) error {
	if m.WithoutMounts || isMountPoint(dir) {
		return nil
	}
	if err := unix.Mount(kind, dir, kind, unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mount %s on %s: %w", kind, dir, err)
	}
	return nil
}
