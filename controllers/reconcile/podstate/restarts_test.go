package podstate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestCompareRestarts(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := func(first, second, sidecar, initial int32) *corev1.Pod {
		return &corev1.Pod{
			Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "sidecar", RestartPolicy: &always}, {Name: "init"}}},
			Status: corev1.PodStatus{
				ContainerStatuses:     []corev1.ContainerStatus{{Name: "a", RestartCount: first}, {Name: "b", RestartCount: second}},
				InitContainerStatuses: []corev1.ContainerStatus{{Name: "sidecar", RestartCount: sidecar}, {Name: "init", RestartCount: initial}},
			},
		}
	}
	for name, c := range map[string]struct {
		a, b *corev1.Pod
		want int
	}{
		"the most counts, not the sum":       {pod(3, 0, 0, 0), pod(2, 2, 0, 0), -1},
		"sidecars count between equals":      {pod(1, 0, 0, 0), pod(0, 1, 1, 0), 1},
		"containers count before sidecars":   {pod(1, 0, 0, 0), pod(0, 0, 9, 0), -1},
		"init containers do not count":       {pod(0, 0, 0, 9), pod(0, 0, 0, 0), 0},
		"the same pod restarts as often too": {pod(1, 2, 3, 4), pod(1, 2, 3, 4), 0},
	} {
		if got := CompareRestarts(c.a, c.b); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
