package podconfig

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// configSource is the annotation that says from where a pod came to its node; only "api" is not static.
const configSource = "kubernetes.io/config.source"

// IsStatic reports whether pod is of a file of its node.
func IsStatic(pod *corev1.Pod) bool {
	source, ok := pod.Annotations[configSource]
	return ok && source != "api"
}

// FromAPI is pod as it came from the API, whatever its annotations say.
func FromAPI(pod *corev1.Pod) *corev1.Pod {
	if !IsStatic(pod) {
		return pod
	}
	own := *pod
	own.Annotations = maps.Clone(pod.Annotations)
	own.Annotations[configSource] = "api"
	return &own
}
