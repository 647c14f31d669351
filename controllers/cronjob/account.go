package cronjob

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/conditions"
)

// account brings into the status what the Jobs tell.
func (t *todo) account(cronJob *batchv1.CronJob, jobs []*batchv1.Job, now time.Time) {
	recorded := t.status.LastScheduleTime
	for _, job := range jobs {
		at, scheduled := scheduledAt(cronJob, job)
		forgotten := scheduled && !at.After(now) && (recorded == nil || at.After(recorded.Time))
		switch end := endOf(job); {
		case end != "":
			t.ended(job, end)
		case lists(&t.status, job):
		case forgotten && job.DeletionTimestamp == nil:
			t.status.Active = append(t.status.Active, refTo(job))
		case !scheduled:
			t.complain(corev1.EventTypeWarning, "UnexpectedJob", "Saw a job that the controller did not create or forgot: %s", job.Name)
		}
		if forgotten {
			t.status.LastScheduleTime = later(t.status.LastScheduleTime, new(metav1.NewTime(at)))
		}
	}
	t.dropMissing(jobs)
}

// ended takes a Job that ended from the active ones.
func (t *todo) ended(job *batchv1.Job, end batchv1.JobConditionType) {
	if lists(&t.status, job) {
		t.status.Active = without(t.status.Active, job)
		t.change("SawCompletedJob", fmt.Sprintf("Saw completed job: %s, condition: %v", job.Name, end))
	}
	if end == batchv1.JobComplete {
		t.status.LastSuccessfulTime = later(t.status.LastSuccessfulTime, job.Status.CompletionTime)
	}
}

// dropMissing takes Jobs that are gone from the active ones.
func (t *todo) dropMissing(jobs []*batchv1.Job) {
	var there []corev1.ObjectReference
	for _, ref := range t.status.Active {
		if slices.ContainsFunc(jobs, func(job *batchv1.Job) bool { return job.UID == ref.UID }) {
			there = append(there, ref)
			continue
		}
		t.change("MissingJob", "Active job went missing: "+ref.Name)
	}
	t.status.Active = there
}

func (t *todo) change(reason, message string) {
	t.events = append(t.events, event{eventtype: corev1.EventTypeNormal, reason: reason, message: message})
}

// expired are the Jobs that ended and are beyond the limits of the history, those that started first.
func expired(cronJob *batchv1.CronJob, jobs []*batchv1.Job) []*batchv1.Job {
	return slices.Concat(
		beyond(cronJob.Spec.SuccessfulJobsHistoryLimit, cronJob, jobs, batchv1.JobComplete),
		beyond(cronJob.Spec.FailedJobsHistoryLimit, cronJob, jobs, batchv1.JobFailed))
}

func beyond(limit *int32, cronJob *batchv1.CronJob, jobs []*batchv1.Job, end batchv1.JobConditionType) []*batchv1.Job {
	if limit == nil {
		return nil
	}
	var ended []*batchv1.Job
	for _, job := range jobs {
		if endOf(job) == end && job.DeletionTimestamp == nil && metav1.IsControlledBy(job, cronJob) {
			ended = append(ended, job)
		}
	}
	slices.SortFunc(ended, byStart)
	return ended[:max(0, len(ended)-int(*limit))]
}

// byStart orders Jobs by when they started, those that never did last.
func byStart(a, b *batchv1.Job) int {
	switch s, t := a.Status.StartTime, b.Status.StartTime; {
	case s != nil && t != nil && !s.Equal(t):
		return s.Compare(t.Time)
	case (s == nil) != (t == nil):
		if s == nil {
			return 1
		}
		return -1
	}
	return cmp.Compare(a.Name, b.Name)
}

// endOf is how the Job ended, empty if it has not.
func endOf(job *batchv1.Job) batchv1.JobConditionType {
	for _, end := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if conditions.Jobs.Is(job.Status.Conditions, end, corev1.ConditionTrue) {
			return end
		}
	}
	return ""
}

// later is the later of two times, of which any may be nil.
func later(a, b *metav1.Time) *metav1.Time {
	if a == nil || b != nil && b.After(a.Time) {
		return b
	}
	return a
}

// lists tells whether the status lists the Job as active.
func lists(status *batchv1.CronJobStatus, job *batchv1.Job) bool {
	return slices.ContainsFunc(status.Active, func(ref corev1.ObjectReference) bool { return ref.UID == job.UID })
}

func without(active []corev1.ObjectReference, job *batchv1.Job) []corev1.ObjectReference {
	return slices.DeleteFunc(slices.Clone(active), func(ref corev1.ObjectReference) bool { return ref.UID == job.UID })
}

// refTo is the Job's entry in the status.
func refTo(job *batchv1.Job) corev1.ObjectReference {
	gvk := batchv1.SchemeGroupVersion.WithKind("Job")
	return corev1.ObjectReference{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: job.Namespace, Name: job.Name, UID: job.UID,
		ResourceVersion: job.ResourceVersion,
	}
}
