package cronjob

import (
	"fmt"
	"math"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// wakeDelay is how long after a time of the schedule its Job starts, so that it is over by a clock that is slow, too.
	wakeDelay = 100 * time.Millisecond
	// sleepMax bounds the pause before the wall clock is looked at again: timers do not notice that it was set, or that
	// the machine slept.
	sleepMax = time.Minute
	// missedMax is how many missed times are taken without a word.
	missedMax = 100
	// deadlineMaxSeconds is the longest startingDeadlineSeconds that fits into a duration, 292 years.
	deadlineMaxSeconds = math.MaxInt64 / int64(time.Second)
)

// event is one of upstream's events.
type event struct {
	eventtype, reason, message string
	// about is the time of the schedule that it concerns, if the message does not say: it is told once for each.
	about time.Time
}

// todo is what one pass does.
type todo struct {
	// status is what follows from the Jobs that are there; act adds what it creates and takes away what it replaces.
	status batchv1.CronJobStatus
	// events are told once the status is written. complaints are of what goes on: they are told when it begins.
	events, complaints []event
	// create is the Job of the time due, once those of replace are deleted; nil for none.
	create  *batchv1.Job
	due     time.Time
	replace []*batchv1.Job
	// expired are deleted once the status has what they tell.
	expired []*batchv1.Job
	// again is the pause before the next pass; 0 until something changes.
	again time.Duration
}

// plan decides what to do about a CronJob: jobs are those that it controls or that its status lists, by name, and
// edited is when its schedule changed.
func plan(cronJob *batchv1.CronJob, jobs []*batchv1.Job, edited, now time.Time) *todo {
	t := &todo{status: *cronJob.Status.DeepCopy(), expired: expired(cronJob, jobs)}
	t.account(cronJob, jobs, now)
	if cronJob.DeletionTimestamp == nil {
		t.schedule(cronJob, jobs, edited, now)
	}
	return t
}

func (t *todo) complain(eventtype, reason, format string, args ...any) {
	t.complaints = append(t.complaints, event{eventtype: eventtype, reason: reason, message: fmt.Sprintf(format, args...)})
}

// schedule plans the next Job and the next pass.
func (t *todo) schedule(cronJob *batchv1.CronJob, jobs []*batchv1.Job, edited, now time.Time) {
	schedule, zone := scheduleOf(cronJob)
	if _, err := time.LoadLocation(zone); err != nil {
		t.complain(corev1.EventTypeWarning, "UnknownTimeZone", "invalid timeZone: %q: %s", zone, err)
		return
	}
	if ptr.Deref(cronJob.Spec.Suspend, false) {
		return
	}
	if zonedItself(schedule) {
		t.complain(corev1.EventTypeWarning, "UnsupportedSchedule", "CRON_TZ or TZ used in schedule %q is not officially supported, "+
			"see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details", schedule)
	}
	parsed, err := parse(cronJob)
	if err != nil {
		t.complain(corev1.EventTypeWarning, "UnparseableSchedule", "unparseable schedule: %q : %s", schedule, err)
		return
	}
	s := times{parsed, t.begin(cronJob).In(now.Location())}
	if _, ok := s.next(s.begin); !ok {
		t.complain(corev1.EventTypeWarning, "InvalidSchedule", "invalid schedule: %s : %s", schedule, errNever)
		return
	}
	due, ok := s.latest(now)
	if !ok {
		t.sleep(s, s.begin, now)
		return
	}
	t.sleep(s, due, now)
	if !due.After(edited) {
		return // what a new schedule would have done before somebody wrote it is not made up for
	}
	if t.due = due; t.mayStart(cronJob, s, edited, now) {
		t.start(cronJob, jobs)
	}
}

// begin is after which times are due: the last that had a Job, or the CronJob's own beginning.
func (t *todo) begin(cronJob *batchv1.CronJob) time.Time {
	if t.status.LastScheduleTime != nil {
		return t.status.LastScheduleTime.Time
	}
	return cronJob.CreationTimestamp.Time
}

// sleep plans the pass at the time that follows last.
func (t *todo) sleep(s times, last, now time.Time) {
	if next, ok := s.next(last); ok {
		t.again = min(max(next.Sub(now), 0)+wakeDelay, sleepMax)
	}
}

// mayStart tells whether the Job of the time due may start, and complains if it must not.
func (t *todo) mayStart(cronJob *batchv1.CronJob, s times, edited, now time.Time) bool {
	from := latestOf(s.begin, edited)
	if seconds := cronJob.Spec.StartingDeadlineSeconds; seconds != nil {
		deadline := time.Duration(min(*seconds, deadlineMaxSeconds)) * time.Second
		if t.due.Add(deadline).Before(now) {
			t.complain(corev1.EventTypeWarning, "MissSchedule", "Missed scheduled time to start a job: %s", t.due.UTC().Format(time.RFC1123Z))
			return false
		}
		from = latestOf(from, now.Add(-deadline))
	}
	if s.moreThan(missedMax, from, now) {
		t.complain(corev1.EventTypeWarning, "TooManyMissedTimes",
			"too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew")
	}
	name := jobName(cronJob, t.due)
	if slices.ContainsFunc(t.status.Active, func(ref corev1.ObjectReference) bool { return ref.Name == name }) {
		return false // of a time in the same minute
	}
	if cronJob.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && len(t.status.Active) > 0 {
		t.complaints = append(t.complaints, event{corev1.EventTypeNormal, "JobAlreadyActive",
			"Not starting job because prior execution is running and concurrency policy is Forbid", t.due})
		return false
	}
	return true
}

func latestOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// start plans the Job of the time due.
func (t *todo) start(cronJob *batchv1.CronJob, jobs []*batchv1.Job) {
	t.create = newJob(cronJob, t.due)
	if cronJob.Spec.ConcurrencyPolicy != batchv1.ReplaceConcurrent {
		return
	}
	for _, job := range jobs {
		if lists(&t.status, job) {
			t.replace = append(t.replace, job)
		}
	}
}

// newJob is the Job of a time. Its name follows from the time, so that there is one at most.
func newJob(cronJob *batchv1.CronJob, at time.Time) *batchv1.Job {
	template := cronJob.Spec.JobTemplate.DeepCopy()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Name: jobName(cronJob, at), Namespace: cronJob.Namespace, Labels: template.Labels, Annotations: template.Annotations,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cronJob, kind)},
	}, Spec: template.Spec}
	_, name := scheduleOf(cronJob)
	zone, err := time.LoadLocation(name) // none is UTC
	if err != nil {
		zone = time.UTC
	}
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, batchv1.CronJobScheduledTimestampAnnotation, at.In(zone).Format(time.RFC3339))
	return job
}

// jobName is the name of the Job of a time: the CronJob's, and the minutes since 1970.
func jobName(cronJob *batchv1.CronJob, at time.Time) string {
	return fmt.Sprintf("%s-%d", cronJob.Name, at.Unix()/60)
}

// scheduledAt is the time whose Job this is; false if it is the Job of no time, such as one that somebody started by hand.
func scheduledAt(cronJob *batchv1.CronJob, job *batchv1.Job) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, job.Annotations[batchv1.CronJobScheduledTimestampAnnotation])
	return at, err == nil && metav1.IsControlledBy(job, cronJob) && job.Name == jobName(cronJob, at)
}
