package status

import (
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/observed"
)

// user is what the first process of a container got, as the runtime says (KEP-3619); nil if it does not say.
func user(latest *observed.Container) *corev1.ContainerUser {
	linux := latest.GetUser().GetLinux()
	if linux == nil {
		return nil
	}
	return &corev1.ContainerUser{Linux: &corev1.LinuxContainerUser{
		UID: linux.Uid, GID: linux.Gid, SupplementalGroups: linux.SupplementalGroups,
	}}
}

// mounts are the container's volume mounts, and whether those that are read-only are so with all that is mounted below them
// (KEP-3857), which is known when the runtime has made the container.
func mounts(c *corev1.Container, latest *observed.Container) []corev1.VolumeMountStatus {
	var out []corev1.VolumeMountStatus
	for i := range c.VolumeMounts {
		m := &c.VolumeMounts[i]
		one := corev1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly && latest != nil {
			mode := corev1.RecursiveReadOnlyDisabled
			if recursive(latest.Mounts, m.MountPath) {
				mode = corev1.RecursiveReadOnlyEnabled
			}
			one.RecursiveReadOnly = &mode
		}
		out = append(out, one)
	}
	return out
}

func recursive(mounts []*runtimeapi.Mount, path string) bool {
	for _, m := range mounts {
		if m.ContainerPath == path {
			return m.RecursiveReadOnly
		}
	}
	return false
}
