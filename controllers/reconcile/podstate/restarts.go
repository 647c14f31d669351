package podstate

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// CompareRestarts is negative when a's containers have restarted more often than b's: by the container of each that restarted most,
// then by such a sidecar (upstream's compareMaxContainerRestarts).
func CompareRestarts(a, b *corev1.Pod) int {
	containersA, sidecarsA := restarts(a)
	containersB, sidecarsB := restarts(b)
	return cmp.Or(cmp.Compare(containersB, containersA), cmp.Compare(sidecarsB, sidecarsA))
}

// restarts are the most of a container, and of a sidecar.
func restarts(p *corev1.Pod) (containers, sidecars int32) {
	for i := range p.Status.ContainerStatuses {
		containers = max(containers, p.Status.ContainerStatuses[i].RestartCount)
	}
	for i := range p.Status.InitContainerStatuses {
		if c := &p.Status.InitContainerStatuses[i]; isSidecar(p, c.Name) {
			sidecars = max(sidecars, c.RestartCount)
		}
	}
	return containers, sidecars
}

func isSidecar(p *corev1.Pod, name string) bool {
	return slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}
