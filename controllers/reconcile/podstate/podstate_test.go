package podstate

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAvailableIn(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	ready := func(status corev1.ConditionStatus, ago time.Duration) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-ago))}}}}
	}
	for _, c := range []struct {
		name     string
		pod      *corev1.Pod
		minReady time.Duration
		wait     time.Duration
		ok       bool
	}{
		{"no condition", &corev1.Pod{}, 0, 0, false},
		{"not ready", ready(corev1.ConditionFalse, time.Hour), 0, 0, false},
		{"ready is available", ready(corev1.ConditionTrue, 0), 0, 0, true},
		{"not for long enough", ready(corev1.ConditionTrue, 4*time.Second), 10 * time.Second, 6 * time.Second, true},
		{"long enough", ready(corev1.ConditionTrue, 10*time.Second), 10 * time.Second, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if wait, ok := AvailableIn(c.pod, c.minReady, now); wait != c.wait || ok != c.ok {
				t.Errorf("got %v %v, want %v %v", wait, ok, c.wait, c.ok)
			}
		})
	}
}

func TestPhases(t *testing.T) {
	for _, c := range []struct {
		phase                         corev1.PodPhase
		dying                         bool
		active, finished, terminating bool
	}{
		{corev1.PodPending, false, true, false, false},
		{corev1.PodRunning, false, true, false, false},
		{corev1.PodRunning, true, false, false, true},
		{corev1.PodSucceeded, false, false, true, false},
		{corev1.PodFailed, true, false, true, false},
	} {
		p := &corev1.Pod{Status: corev1.PodStatus{Phase: c.phase}}
		if c.dying {
			p.DeletionTimestamp = &metav1.Time{}
		}
		if Active(p) != c.active || Finished(p) != c.finished || Terminating(p) != c.terminating {
			t.Errorf("%s dying %v: active %v, finished %v, terminating %v", c.phase, c.dying, Active(p), Finished(p), Terminating(p))
		}
	}
}
