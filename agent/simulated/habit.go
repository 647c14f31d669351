package simulated

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Habit is how a pod behaves: as others of its kind were seen to.
type Habit struct {
	// Never: its containers do not come to run.
	Never bool
	// ReadyAfter is how long after it got its node it is Running and Ready.
	ReadyAfter time.Duration
	// Runs is how long it runs if it is one that ends; 0: as the package says, less: it goes on.
	Runs time.Duration
}

func (f *fleet) habit(pod *corev1.Pod) Habit {
	if f.Habit == nil {
		return Habit{}
	}
	return f.Habit(pod)
}

// ends returns when a running pod ends by itself; false for never.
func (f *fleet) ends(pod *corev1.Pod) (at time.Time, does bool) { return Ends(pod, f.habit(pod)) }

// Ends returns when a running pod ends by itself that has the habit; false for never.
func Ends(pod *corev1.Pod, habit Habit) (at time.Time, does bool) {
	if at, does = ends(pod); !does {
		return at, does
	}
	switch runs := habit.Runs; {
	case runs < 0:
		return time.Time{}, false
	case runs > 0:
		return began(pod).Add(runs), true
	}
	return at, does
}

// awaits is true for a pod that is not ready yet, and is looked at again when it is.
func (f *fleet) awaits(key types.NamespacedName, pod *corev1.Pod, now time.Time) bool {
	if f.Habit == nil || pod.Status.Phase == corev1.PodRunning && !f.starts(pod) {
		return false
	}
	habit := f.Habit(pod)
	wait := habit.Ready(pod).Sub(now)
	if !habit.Never && wait > 0 {
		f.queue.AddAfter(key, wait)
	}
	return habit.Never || wait > 0
}

// Ready is when a pod that has a node becomes ready, unless it never does: what it waited for a node does not count.
func (h Habit) Ready(pod *corev1.Pod) time.Time {
	since := pod.CreationTimestamp.Time
	bound := conditionOf(pod, corev1.PodScheduled)
	if bound != nil && bound.Status == corev1.ConditionTrue && bound.LastTransitionTime.After(since) {
		since = bound.LastTransitionTime.Time
	}
	return since.Add(h.ReadyAfter)
}

// starts is true for an adopted pod whose containers run and are not ready, as its agent has told.
func (f *fleet) starts(pod *corev1.Pod) bool {
	containers, shown := conditionOf(pod, corev1.ContainersReady), conditionOf(pod, corev1.PodReady)
	return f.Habit != nil && pod.Status.Phase == corev1.PodRunning && shown != nil && shown.Status != corev1.ConditionTrue &&
		shown.Reason != reasonLost && containers != nil && containers.Status != corev1.ConditionTrue
}

// untold is true for a running pod whose spec is newer than its status. That of an adopted pod is its agent's, which may not tell.
func (f *fleet) untold(pod *corev1.Pod) bool {
	return f.Habit == nil && pod.Status.ObservedGeneration < pod.Generation
}
