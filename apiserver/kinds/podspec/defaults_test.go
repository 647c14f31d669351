package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestPullPolicy(t *testing.T) {
	for image, want := range map[string]corev1.PullPolicy{
		"app":        corev1.PullAlways,
		"app:latest": corev1.PullAlways,
		"app:1":      corev1.PullIfNotPresent,
		"app@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa":        corev1.PullIfNotPresent,
		"app:latest@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": corev1.PullAlways,
		"registry.test:5000/team/app":   corev1.PullAlways,
		"registry.test:5000/team/app:1": corev1.PullIfNotPresent,
		"":                              corev1.PullIfNotPresent,
		"No Image":                      corev1.PullIfNotPresent,
	} {
		if got := pullPolicy(image); got != want {
			t.Errorf("pullPolicy(%q) = %s, want %s", image, got, want)
		}
	}
}

// TestNegativeGrace: a pod's becomes the shortest there is, a template's stays as it is written.
func TestNegativeGrace(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To[int64](-1)}}
	DefaultPod(pod)
	template := &corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To[int64](-1)}
	Default(template)
	if got, kept := *pod.Spec.TerminationGracePeriodSeconds, *template.TerminationGracePeriodSeconds; got != 1 || kept != -1 {
		t.Errorf("pod %d, template %d; want 1 and -1", got, kept)
	}
}
