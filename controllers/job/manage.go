package job

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
)

// burst is the largest number of pods that one pass creates or deletes.
const burst = 500

// manage decides which pods to create or delete while the Job goes on; deleting comes first.
func manage(v *view, failures streak, now time.Time) todo {
	if suspended(v.job) {
		return todo{managed: true, remove: v.active}
	}
	wish := wanted(v)
	if surplus := surplus(v, wish); len(surplus) > 0 {
		return todo{managed: true, remove: surplus[:min(len(surplus), burst)]}
	}
	missing := wish - len(v.active)
	if replacesFailedOnly(v.job) {
		missing -= len(v.terminating)
	}
	if missing <= 0 {
		return todo{managed: true}
	}
	return create(v, min(missing, burst), failures, now)
}

// wanted is how many pods there should be.
func wanted(v *view) int {
	parallelism := int(*v.job.Spec.Parallelism)
	switch {
	case v.job.Spec.Completions != nil:
		return max(0, min(parallelism, int(*v.job.Spec.Completions)-int(v.succeeded)))
	case v.succeeded > 0:
		return len(v.active) // a work queue that is empty: what runs may end
	}
	return parallelism
}

// create decides which pods to create, or how long to wait for it.
func create(v *view, missing int, failures streak, now time.Time) todo {
	if v.job.Spec.BackoffLimitPerIndex == nil {
		if wait := failures.wait(now); wait > 0 {
			return todo{managed: true, again: wait}
		}
	}
	if !indexed(v.job) {
		return todo{managed: true, create: slices.Repeat([]int{noIndex}, missing)}
	}
	t := todo{managed: true}
	for _, index := range pending(v, missing) {
		if wait := indexWait(v.last[index], now); wait > 0 {
			t.again = sooner(t.again, wait)
		} else {
			t.create = append(t.create, index)
		}
	}
	return t
}

// pending are the first n indexes that need a pod.
func pending(v *view, n int) []int {
	taken := union(v.completed, v.lost, indexesOfPods(v.active))
	if replacesFailedOnly(v.job) {
		taken = union(taken, indexesOfPods(v.terminating))
	}
	var first []int
	for index := range taken.missing(int(*v.job.Spec.Completions)) {
		if len(first) == n {
			break
		}
		first = append(first, index)
	}
	return first
}

// surplus are the active pods beyond the wish, and those whose index is no longer one of the Job or has another pod.
func surplus(v *view, wish int) []*corev1.Pod {
	var out []*corev1.Pod
	left := slices.Clone(v.active)
	if indexed(v.job) {
		out, left = strays(v)
	}
	if n := len(v.active) - wish - len(out); n > 0 {
		slices.SortStableFunc(left, compareLoss)
		out = append(out, left[:n]...)
	}
	return out
}

// strays are the pods without an own index; rest are the others, one of each index.
func strays(v *view) (strays, rest []*corev1.Pod) {
	for _, pods := range byIndex(v.active) {
		if !v.placed(pods[0]) {
			strays = append(strays, pods...)
			continue
		}
		slices.SortStableFunc(pods, compareLoss)
		strays = append(strays, pods[:len(pods)-1]...)
		rest = append(rest, pods[len(pods)-1])
	}
	return strays, rest
}

// compareLoss is negative when a is deleted before b: not placed, not running, not ready, ready for a shorter time,
// restarted more often, younger.
func compareLoss(a, b *corev1.Pod) int {
	return cmp.Or(
		podstate.CompareProgress(a, b),
		compareAge(podstate.ReadySince(a), podstate.ReadySince(b)),
		podstate.CompareRestarts(a, b),
		compareAge(a.CreationTimestamp.Time, b.CreationTimestamp.Time),
		cmp.Compare(a.UID, b.UID),
	)
}

// compareAge puts the younger first; an unknown time counts as youngest.
func compareAge(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return podstate.CompareBool(!a.IsZero(), !b.IsZero())
	}
	return b.Compare(a)
}
