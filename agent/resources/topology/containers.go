package topology

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
)

// Containers are those that get resources of their own, in the order in which they start, and whether each ends before the next starts.
func Containers(pod *corev1.Pod) iter.Seq2[*corev1.Container, bool] {
	return func(yield func(*corev1.Container, bool) bool) {
		for i := range pod.Spec.InitContainers {
			if c := &pod.Spec.InitContainers[i]; !yield(c, !IsSidecar(c)) {
				return
			}
		}
		for i := range pod.Spec.Containers {
			if !yield(&pod.Spec.Containers[i], false) {
				return
			}
		}
	}
}

// IsSidecar: an init container that goes on to run.
func IsSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
