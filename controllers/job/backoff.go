package job

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
)

// A pod that failed is replaced after backoffMin, after twice as long when the next one fails too,
// and so on up to backoffMax.
const (
	backoffMin = 10 * time.Second
	backoffMax = 10 * time.Minute
)

// streak is the row of failures since the last pod that succeeded.
type streak struct {
	failures int
	last     time.Time // of the failures
}

// with is the streak after further pods ended.
func (s streak) with(succeeded, failed []*corev1.Pod) streak {
	var success time.Time
	for _, pod := range succeeded {
		success = later(success, endOf(pod))
	}
	if len(succeeded) > 0 {
		s = streak{}
	}
	for _, pod := range failed {
		if end := endOf(pod); len(succeeded) == 0 || end.After(success) {
			s.failures++
			s.last = later(s.last, end)
		}
	}
	return s
}

// wait is how long the next pod has to wait.
func (s streak) wait(now time.Time) time.Duration {
	if s.failures <= 0 {
		return 0
	}
	pause := backoffMin
	for i := 1; i < s.failures && pause < backoffMax; i++ {
		pause *= 2
	}
	return max(0, s.last.Add(min(pause, backoffMax)).Sub(now))
}

// indexWait is the same for one index, whose last failed pod carries the count.
func indexWait(last *corev1.Pod, now time.Time) time.Duration {
	if last == nil {
		return 0
	}
	return streak{allFailures(last) + 1, endOf(last)}.wait(now)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// endOf is when a pod ended: when its last container did, as far as all have; else when it was
// no longer ready; else when it was asked to stop.
func endOf(pod *corev1.Pod) time.Time {
	if end := containersEnd(pod); !end.IsZero() {
		return end
	}
	if c := podstate.Condition(pod, corev1.PodReady); c != nil && c.Status == corev1.ConditionFalse && !c.LastTransitionTime.IsZero() {
		return c.LastTransitionTime.Time
	}
	if pod.DeletionTimestamp != nil {
		return pod.DeletionTimestamp.Add(-time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second)
	}
	return pod.CreationTimestamp.Time
}

// containersEnd is when the last container ended, sidecars included; zero while one has not.
func containersEnd(pod *corev1.Pod) time.Time {
	sidecar := map[string]bool{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		sidecar[c.Name] = c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	}
	statuses := slices.Clone(pod.Status.ContainerStatuses)
	for _, s := range pod.Status.InitContainerStatuses {
		if sidecar[s.Name] {
			statuses = append(statuses, s)
		}
	}
	var end time.Time
	for i := range statuses {
		ended := statuses[i].State.Terminated
		if ended == nil || ended.FinishedAt.IsZero() {
			return time.Time{}
		}
		end = later(end, ended.FinishedAt.Time)
	}
	return end
}

// countedFailures and ignoredFailures are how many pods of its index failed before this one.
func countedFailures(pod *corev1.Pod) int { return number(pod, batchv1.JobIndexFailureCountAnnotation) }
func ignoredFailures(pod *corev1.Pod) int {
	return number(pod, batchv1.JobIndexIgnoredFailureCountAnnotation)
}
func allFailures(pod *corev1.Pod) int { return countedFailures(pod) + ignoredFailures(pod) }

func number(pod *corev1.Pod, annotation string) int {
	n, err := strconv.Atoi(pod.Annotations[annotation])
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0
	}
	return n
}

// laterFailure orders the failed pods of an index by what they know of it.
func laterFailure(a, b *corev1.Pod) int {
	return cmp.Or(cmp.Compare(allFailures(a), allFailures(b)), endOf(a).Compare(endOf(b)), cmp.Compare(a.UID, b.UID))
}
