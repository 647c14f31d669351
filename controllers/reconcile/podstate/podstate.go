package podstate

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/conditions"
)

// Active reports whether the pod runs or will: neither finished nor asked to
// stop.
func Active(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && !Finished(p)
}

// Finished reports whether the pod's containers have ended for good.
func Finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// Terminating reports whether the pod was asked to stop and has not ended.
func Terminating(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil && !Finished(p)
}

// Condition returns the pod's condition of a type, or nil.
func Condition(p *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	return conditions.Pods.Find(p.Status.Conditions, t)
}

// Ready reports whether the pod's Ready condition is True.
func Ready(p *corev1.Pod) bool {
	return conditions.Pods.Is(p.Status.Conditions, corev1.PodReady, corev1.ConditionTrue)
}

// ReadySince is when the pod became ready; zero when it is not.
func ReadySince(p *corev1.Pod) time.Time {
	if c := Condition(p, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// AvailableIn is how long the pod still has to stay ready until it counts as
// available: 0 when it does already. ok is false when it is not ready at all.
func AvailableIn(p *corev1.Pod, minReady time.Duration, now time.Time) (wait time.Duration, ok bool) {
	if !Ready(p) {
		return 0, false
	}
	if minReady <= 0 {
		return 0, true
	}
	return max(0, ReadySince(p).Add(minReady).Sub(now)), true
}
