package job

import (
	"cmp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/controllers/reconcile/conditions"
)

// uncountedMax bounds the list of uncounted pods in the status to about 20 KB.
const uncountedMax = 500

// outcome is what a pass did to pods, and what it found about the end of the Job.
type outcome struct {
	active, ready, terminating int32
	// managed is as in todo.
	managed bool
	// end is why the Job ends, nil if it goes on.
	end *batchv1.JobCondition
	// over is true when every pod of a Job that ends is known, and ended or was asked to stop.
	over bool
}

// account is one step of counting. It returns the status to be written first, and then the pods that lose their
// finalizer. Each pod that has ended goes through these states, and a crash after any write leaves it in one of them:
// it has the finalizer and is in no list; it has it and is listed as uncounted (or its index as completed); it has it
// no longer and is listed; it is in the count. Steps are repeated until nothing changes. It is pure.
func account(v *view, o outcome, now time.Time) (status batchv1.JobStatus, release []*corev1.Pod) {
	l := newLedger(v)
	l.settle()
	release, all := l.gather(o)
	l.countIndexes()
	l.status.Active, l.status.Ready, l.status.Terminating = o.active, &o.ready, &o.terminating
	l.suspension(o, now)
	l.end(o, all && len(release) == 0, now)
	return l.status, release
}

// ledger is the work of one account.
type ledger struct {
	*view
	status            batchv1.JobStatus
	succeeded, failed map[types.UID]bool // uncounted, as the Job has them
}

func newLedger(v *view) *ledger {
	l := &ledger{view: v, status: *v.job.Status.DeepCopy()}
	l.succeeded, l.failed = uncounted(&l.status)
	if l.status.UncountedTerminatedPods == nil {
		l.status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	}
	return l
}

// settle moves uncounted pods whose finalizer is gone into the counts.
func (l *ledger) settle() {
	waiting := map[types.UID]bool{}
	for _, pod := range l.pods {
		if tracked(pod) {
			waiting[pod.UID] = true
		}
	}
	lists := l.status.UncountedTerminatedPods
	lists.Succeeded = l.counts(lists.Succeeded, waiting, &l.status.Succeeded)
	lists.Failed = l.counts(lists.Failed, waiting, &l.status.Failed)
}

// counts adds the pods that do not wait to a count, and returns the others.
func (l *ledger) counts(list []types.UID, waiting map[types.UID]bool, count *int32) []types.UID {
	var left []types.UID
	for _, uid := range list {
		if waiting[uid] {
			left = append(left, uid)
		} else {
			*count++
		}
	}
	return left
}

// gather lists pods that have ended as uncounted, and returns those that may lose their finalizer then. all is
// false when there are more than the lists take at once.
func (l *ledger) gather(o outcome) (release []*corev1.Pod, all bool) {
	pods := slices.Clone(l.pods)
	if indexed(l.job) {
		slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(indexOf(a), indexOf(b)) })
	}
	lists := l.status.UncountedTerminatedPods
	newIndexes := map[int]bool{}
	for _, pod := range pods {
		if !tracked(pod) || !l.releasable(pod, o.over) {
			continue
		}
		if len(newIndexes)+len(lists.Succeeded)+len(lists.Failed) >= uncountedMax {
			return release, false
		}
		release = append(release, pod)
		switch {
		case pod.Status.Phase == corev1.PodSucceeded && !l.failed[pod.UID]:
			switch {
			case !indexed(l.job):
				lists.Succeeded = listed(lists.Succeeded, pod, l.succeeded)
			case l.placed(pod) && !l.counted.has(indexOf(pod)):
				newIndexes[indexOf(pod)] = true // the index says that it was counted
			}
		case l.fails(pod, o) && l.placed(pod) && judge(l.job, pod).counts:
			lists.Failed = listed(lists.Failed, pod, l.failed)
		}
	}
	return release, true
}

func listed(list []types.UID, pod *corev1.Pod, before map[types.UID]bool) []types.UID {
	if before[pod.UID] {
		return list
	}
	return append(list, pod.UID)
}

// fails tells whether the pod counts as failed. Every pod that has not ended when a Job fails does.
func (l *ledger) fails(pod *corev1.Pod, o outcome) bool {
	return failedPod(l.job, pod) || o.over && o.end.Type == batchv1.JobFailureTarget
}

// releasable tells whether the pod may lose its finalizer once it is listed: when it has ended, unless its successor
// still needs it, or when nothing comes after it.
func (l *ledger) releasable(pod *corev1.Pod, over bool) bool {
	if l.job.DeletionTimestamp != nil || over || pod.Status.Phase == corev1.PodSucceeded {
		return true
	}
	if !failedPod(l.job, pod) {
		return false
	}
	waiting := l.last[indexOf(pod)]
	return waiting == nil || waiting.UID != pod.UID
}

// countIndexes writes what is known of indexes; the number of completed ones is the number of successes.
func (l *ledger) countIndexes() {
	if !indexed(l.job) {
		return
	}
	l.status.Succeeded, l.status.CompletedIndexes = int32(l.completed.total()), l.completed.String()
	l.status.FailedIndexes = nil
	if l.job.Spec.BackoffLimitPerIndex != nil {
		l.status.FailedIndexes = new(l.lost.String())
	}
}

// suspension keeps the Suspended condition. A Job that was never suspended has none. Its time begins anew when it is resumed.
func (l *ledger) suspension(o outcome, now time.Time) {
	if !o.managed || o.end != nil || suspended(l.job) == is(l.job, batchv1.JobSuspended) {
		return
	}
	next := *condition(batchv1.JobSuspended, "JobSuspended", "Job suspended", now)
	l.status.StartTime = nil
	if !suspended(l.job) {
		next.Status, next.Reason, next.Message = corev1.ConditionFalse, "JobResumed", "Job resumed"
		l.status.StartTime = new(metav1.NewTime(now))
	}
	l.status.Conditions = conditions.Jobs.Set(l.status.Conditions, next, now)
}

// end writes how the Job ends: first what was decided, so that it stands, and when the last pod has ended and is
// counted the final condition. counted says that no pod still has its finalizer.
func (l *ledger) end(o outcome, counted bool, now time.Time) {
	switch {
	case o.end == nil:
		return
	case !is(l.job, o.end.Type):
		l.status.Conditions = conditions.Jobs.Set(l.status.Conditions, *o.end, now)
		return
	}
	lists := l.status.UncountedTerminatedPods
	if !o.over || !counted || o.terminating > 0 || len(lists.Succeeded)+len(lists.Failed) > 0 {
		return
	}
	kind := batchv1.JobFailed
	if o.end.Type == batchv1.JobSuccessCriteriaMet {
		kind = batchv1.JobComplete
		l.status.CompletionTime = new(metav1.NewTime(now))
	}
	l.status.Conditions = conditions.Jobs.Set(l.status.Conditions, *condition(kind, o.end.Reason, o.end.Message, now), now)
}

// begun is the Job with the time at which it started, which is now unless it did before or is suspended.
func begun(job *batchv1.Job, now time.Time) *batchv1.Job {
	if job.Status.StartTime != nil || suspended(job) {
		return job
	}
	job = job.DeepCopy()
	job.Status.StartTime = ptr.To(metav1.NewTime(now))
	return job
}
