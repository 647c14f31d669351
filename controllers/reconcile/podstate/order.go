package podstate

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
)

// CompareProgress is negative when a has come less far than b: not placed, not running, not ready. Every loop that has too many pods
// deletes such ones first, as upstream does.
func CompareProgress(a, b *corev1.Pod) int {
	return cmp.Or(
		CompareBool(a.Spec.NodeName != "", b.Spec.NodeName != ""),
		cmp.Compare(phaseOrder(a), phaseOrder(b)),
		CompareBool(Ready(a), Ready(b)),
	)
}

func phaseOrder(pod *corev1.Pod) int {
	switch pod.Status.Phase {
	case corev1.PodRunning:
		return 2
	case corev1.PodUnknown:
		return 1
	}
	return 0
}

// CompareBool puts false before true.
func CompareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
