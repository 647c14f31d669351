package job

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/controllers/reconcile/conditions"
	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
)

// view is what follows from a Job and its pods at one moment.
type view struct {
	job  *batchv1.Job
	pods []*corev1.Pod
	// active neither ended nor were asked to stop; ready of them are ready.
	active []*corev1.Pod
	ready  int32
	// terminating were asked to stop and have not ended.
	terminating []*corev1.Pod
	// newSucceeded and newFailed ended and are in no count yet.
	newSucceeded, newFailed []*corev1.Pod
	// succeeded and failed are the counts with everything that has ended.
	succeeded, failed int32
	// counted and completed are the indexes that succeeded: by the status, and with everything that has ended.
	counted, completed indexes
	// lost are the indexes that failed for good; there are none without a limit for each index.
	lost indexes
	// last is the pod that failed last of each index that waits for another try. It keeps its
	// finalizer until its successor exists, which takes over the count of failures from it.
	last map[int]*corev1.Pod
}

// look gathers what follows from a Job and its pods.
func look(job *batchv1.Job, pods []*corev1.Pod) *view {
	v := &view{job: job, pods: pods}
	for _, pod := range pods {
		switch {
		case podstate.Active(pod):
			v.active = append(v.active, pod)
			if podstate.Ready(pod) {
				v.ready++
			}
		case podstate.Terminating(pod):
			v.terminating = append(v.terminating, pod)
		}
	}
	v.count()
	if indexed(job) {
		v.countIndexes()
	}
	return v
}

// count adds the pods that have ended to the counts of the status.
func (v *view) count() {
	succeeded, failed := uncounted(&v.job.Status)
	for _, pod := range v.pods {
		switch {
		case !tracked(pod) || !v.placed(pod):
		case pod.Status.Phase == corev1.PodSucceeded:
			if !succeeded[pod.UID] {
				v.newSucceeded = append(v.newSucceeded, pod)
			}
		case failedPod(v.job, pod) && !failed[pod.UID]:
			v.newFailed = append(v.newFailed, pod)
			if judge(v.job, pod).counts {
				v.failed++
			}
		}
	}
	v.succeeded = v.job.Status.Succeeded + int32(len(v.newSucceeded)+len(succeeded))
	v.failed += v.job.Status.Failed + int32(len(failed))
}

// countIndexes does the same for indexes.
func (v *view) countIndexes() {
	completions := int(*v.job.Spec.Completions)
	v.counted = parseIndexes(v.job.Status.CompletedIndexes, completions)
	ended := map[int]bool{}
	for _, pod := range v.pods {
		if tracked(pod) && v.placed(pod) && pod.Status.Phase == corev1.PodSucceeded {
			ended[indexOf(pod)] = true
		}
	}
	v.completed = union(v.counted, indexesOf(ended))
	v.succeeded = int32(v.completed.total())
	if v.job.Spec.BackoffLimitPerIndex == nil {
		return
	}
	failed := map[int]bool{}
	for _, pod := range v.pods {
		if tracked(pod) && v.placed(pod) && losesIndex(v.job, pod) {
			failed[indexOf(pod)] = true
		}
	}
	v.lost = union(parseIndexes(ptr.Deref(v.job.Status.FailedIndexes, ""), completions), indexesOf(failed))
	v.findLast()
}

// findLast finds the last failed pod of each index that waits for another try.
func (v *view) findLast() {
	v.last = map[int]*corev1.Pod{}
	running := indexesOfPods(v.active)
	for _, pod := range v.pods {
		index := indexOf(pod)
		if !tracked(pod) || !v.placed(pod) || !failedPod(v.job, pod) || v.completed.has(index) || v.lost.has(index) || running.has(index) {
			continue
		}
		if other := v.last[index]; other == nil || laterFailure(pod, other) > 0 {
			v.last[index] = pod
		}
	}
}

// placed is false for pods of an indexed Job whose index is none of the Job's.
func (v *view) placed(pod *corev1.Pod) bool {
	index := indexOf(pod)
	return !indexed(v.job) || index != noIndex && index < int(*v.job.Spec.Completions)
}

// losesIndex tells whether the pod's failure is the last that its index may have.
func losesIndex(job *batchv1.Job, pod *corev1.Pod) bool {
	if !failedPod(job, pod) {
		return false
	}
	verdict := judge(job, pod)
	return verdict.failsIndex || verdict.counts && countedFailures(pod) >= int(*job.Spec.BackoffLimitPerIndex)
}

// uncounted are the pods that the status names as ended and not yet counted.
func uncounted(status *batchv1.JobStatus) (succeeded, failed map[types.UID]bool) {
	succeeded, failed = map[types.UID]bool{}, map[types.UID]bool{}
	if status.UncountedTerminatedPods == nil {
		return succeeded, failed
	}
	for _, uid := range status.UncountedTerminatedPods.Succeeded {
		succeeded[uid] = true
	}
	for _, uid := range status.UncountedTerminatedPods.Failed {
		failed[uid] = true
	}
	return succeeded, failed
}

// tracked tells whether the pod has still to be counted, or does not count any more.
func tracked(pod *corev1.Pod) bool {
	return slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer)
}

// failedPod tells whether the pod counts as failed. One that was asked to stop does at once,
// unless the Job replaces pods only when they have ended: it may never be seen to end.
func failedPod(job *batchv1.Job, pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodFailed {
		return true
	}
	return !replacesFailedOnly(job) && pod.DeletionTimestamp != nil && pod.Status.Phase != corev1.PodSucceeded
}

func indexed(job *batchv1.Job) bool {
	return ptr.Deref(job.Spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion
}

func suspended(job *batchv1.Job) bool { return ptr.Deref(job.Spec.Suspend, false) }

func replacesFailedOnly(job *batchv1.Job) bool {
	return ptr.Deref(job.Spec.PodReplacementPolicy, batchv1.TerminatingOrFailed) == batchv1.Failed
}

// elsewhere tells whether another controller manages the Job.
func elsewhere(job *batchv1.Job) bool {
	return ptr.Deref(job.Spec.ManagedBy, batchv1.JobControllerName) != batchv1.JobControllerName
}

// finished tells whether the Job has ended for good.
func finished(job *batchv1.Job) bool {
	return is(job, batchv1.JobComplete) || is(job, batchv1.JobFailed)
}

func is(job *batchv1.Job, condition batchv1.JobConditionType) bool {
	return conditions.Jobs.Is(job.Status.Conditions, condition, corev1.ConditionTrue)
}
