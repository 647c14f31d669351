package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestPullPolicy(t *testing.T) {
	for image, want := range map[string]corev1.PullPolicy{
		"app":                           corev1.PullAlways,
		"app:latest":                    corev1.PullAlways,
		"app:1":                         corev1.PullIfNotPresent,
		"app@sha256:0123":               corev1.PullIfNotPresent,
		"app:latest@sha256:0123":        corev1.PullAlways,
		"registry.test:5000/team/app":   corev1.PullAlways,
		"registry.test:5000/team/app:1": corev1.PullIfNotPresent,
		"":                              corev1.PullIfNotPresent,
	} {
		if got := pullPolicy(image); got != want {
			t.Errorf("pullPolicy(%q) = %s, want %s", image, got, want)
		}
	}
}
