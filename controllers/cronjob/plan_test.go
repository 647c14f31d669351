package cronjob

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// born is when the CronJobs of the tables were created.
var born = time.Date(2026, time.March, 2, 10, 0, 30, 0, time.UTC)

// at is a time of that day.
func at(clock string) time.Time {
	t := must(time.Parse(time.TimeOnly, clock))
	return time.Date(born.Year(), born.Month(), born.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

type change = func(cronJob *batchv1.CronJob)

// newCronJob is a CronJob with the defaults of the API.
func newCronJob(schedule string, changes ...change) *batchv1.CronJob {
	cronJob := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", UID: "the-cronjob", CreationTimestamp: metav1.NewTime(born)},
		Spec: batchv1.CronJobSpec{
			Schedule: schedule, ConcurrencyPolicy: batchv1.AllowConcurrent, Suspend: new(false),
			SuccessfulJobsHistoryLimit: new(int32(3)), FailedJobsHistoryLimit: new(int32(1)),
			JobTemplate: batchv1.JobTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"x": "y"}},
				Spec:       batchv1.JobSpec{Parallelism: new(int32(2))},
			},
		},
	}
	for _, f := range changes {
		f(cronJob)
	}
	return cronJob
}

func inZone(zone string) change {
	return func(cronJob *batchv1.CronJob) { cronJob.Spec.TimeZone = &zone }
}

func policy(p batchv1.ConcurrencyPolicy) change {
	return func(cronJob *batchv1.CronJob) { cronJob.Spec.ConcurrencyPolicy = p }
}

func deadline(seconds int64) change {
	return func(cronJob *batchv1.CronJob) { cronJob.Spec.StartingDeadlineSeconds = &seconds }
}

func suspended(cronJob *batchv1.CronJob) { cronJob.Spec.Suspend = new(true) }

func deleted(cronJob *batchv1.CronJob) { cronJob.DeletionTimestamp = new(metav1.NewTime(born)) }

func last(clock string) change {
	return func(cronJob *batchv1.CronJob) { cronJob.Status.LastScheduleTime = new(metav1.NewTime(at(clock))) }
}

// active lists Jobs of these times.
func active(clocks ...string) change {
	return func(cronJob *batchv1.CronJob) {
		for _, clock := range clocks {
			cronJob.Status.Active = append(cronJob.Status.Active, refTo(jobOf(cronJob, clock, "")))
		}
	}
}

func limits(succeeded, failed int32) change {
	return func(cronJob *batchv1.CronJob) {
		cronJob.Spec.SuccessfulJobsHistoryLimit, cronJob.Spec.FailedJobsHistoryLimit = &succeeded, &failed
	}
}

// jobOf is the Job of a time, as it is a minute after that: it may have ended.
func jobOf(cronJob *batchv1.CronJob, clock string, end batchv1.JobConditionType) *batchv1.Job {
	job := newJob(cronJob, at(clock))
	job.UID = types.UID("uid-of-" + clock)
	job.Status.StartTime = new(metav1.NewTime(at(clock)))
	if end != "" {
		finish(job, end, at(clock).Add(time.Minute))
	}
	return job
}

func finish(job *batchv1.Job, end batchv1.JobConditionType, now time.Time) {
	job.Status.Conditions = []batchv1.JobCondition{{Type: end, Status: corev1.ConditionTrue}}
	if end == batchv1.JobComplete {
		job.Status.CompletionTime = new(metav1.NewTime(now))
	}
}

// byHand is a Job that somebody made of the CronJob.
func byHand(cronJob *batchv1.CronJob, name string, end batchv1.JobConditionType) *batchv1.Job {
	job := jobOf(cronJob, "10:00:45", end)
	job.Name, job.UID = name, types.UID("uid-of-"+name)
	job.Annotations = map[string]string{"cronjob.kubernetes.io/instantiate": "manual"}
	return job
}

// clockOf writes a time as the tables do.
func clockOf(t time.Time) string { return t.UTC().Format(time.TimeOnly) }

// said is what a plan says, in words.
func said(cronJob *batchv1.CronJob, t *todo) []string {
	names := func(jobs []*batchv1.Job) string {
		var out []string
		for _, job := range jobs {
			out = append(out, nameOf(cronJob, job.Name))
		}
		return strings.Join(out, " ")
	}
	var out []string
	add := func(holds bool, format string, args ...any) {
		if holds {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	add(len(t.replace) > 0, "replace %s", names(t.replace))
	add(t.create != nil, "create %s", clockOf(t.due))
	var listed []string
	for _, ref := range t.status.Active {
		listed = append(listed, nameOf(cronJob, ref.Name))
	}
	add(len(listed) > 0, "active %s", strings.Join(listed, " "))
	if s := t.status.LastScheduleTime; s != nil && !s.Equal(cronJob.Status.LastScheduleTime) {
		add(true, "last %s", clockOf(s.Time))
	}
	if s := t.status.LastSuccessfulTime; s != nil {
		add(true, "success %s", clockOf(s.Time))
	}
	add(len(t.expired) > 0, "expire %s", names(t.expired))
	for _, e := range append(t.events, t.complaints...) {
		add(true, "%s", e.reason)
	}
	add(t.again > 0, "again %s", t.again)
	return out
}

// nameOf is the name of a Job of that day as its time.
func nameOf(cronJob *batchv1.CronJob, name string) string {
	for minute := at("00:00:00"); minute.Day() == born.Day(); minute = minute.Add(time.Minute) {
		if jobName(cronJob, minute) == name {
			return minute.Format("15:04")
		}
	}
	return name
}

func TestPlan(t *testing.T) {
	const complete, failed = batchv1.JobComplete, batchv1.JobFailed
	jobs := func(jobs ...*batchv1.Job) []*batchv1.Job { return jobs }
	hourly, forbid, replace := "0 * * * *", policy(batchv1.ForbidConcurrent), policy(batchv1.ReplaceConcurrent)
	of := newCronJob(hourly)
	terminating := jobOf(of, "11:00:00", "")
	terminating.DeletionTimestamp = new(metav1.NewTime(at("11:30:00")))
	for name, c := range map[string]struct {
		cronJob *batchv1.CronJob
		jobs    []*batchv1.Job
		edited  string
		now     string
		want    string
	}{
		"not yet":                      {cronJob: newCronJob(hourly), now: "10:59:30", want: "again 30.1s"},
		"long before":                  {cronJob: newCronJob(hourly), now: "10:10:00", want: "again 1m0s"},
		"at its time":                  {cronJob: newCronJob(hourly), now: "11:00:00", want: "create 11:00:00, again 1m0s"},
		"every minute":                 {cronJob: newCronJob("* * * * *"), now: "10:01:00", want: "create 10:01:00, again 1m0s"},
		"a few missed":                 {cronJob: newCronJob(hourly), now: "14:30:00", want: "create 14:00:00, again 1m0s"},
		"many missed":                  {cronJob: newCronJob("* * * * *"), now: "11:41:10", want: "create 11:41:00, TooManyMissedTimes, again 50.1s"},
		"as many as are usual":         {cronJob: newCronJob("* * * * *"), now: "11:40:10", want: "create 11:40:00, again 50.1s"},
		"many missed, few in time":     {cronJob: newCronJob("* * * * *", deadline(200)), now: "11:41:10", want: "create 11:41:00, again 50.1s"},
		"done":                         {cronJob: newCronJob(hourly, last("11:00:00")), now: "11:00:00", want: "again 1m0s"},
		"in its zone":                  {cronJob: newCronJob("0 16 * * *", inZone("Asia/Kolkata")), now: "10:30:01", want: "create 10:30:00, again 1m0s"},
		"in a zone that does not know": {cronJob: newCronJob(hourly, inZone("Nowhere/City")), now: "11:00:00", want: "UnknownTimeZone"},
		"zone in the schedule":         {cronJob: newCronJob("TZ=Asia/Kolkata 0 16 * * *"), now: "10:30:01", want: "create 10:30:00, UnsupportedSchedule, again 1m0s"},
		"bad schedule":                 {cronJob: newCronJob("bad"), now: "11:00:00", want: "UnparseableSchedule"},
		"no such day":                  {cronJob: newCronJob("0 0 31 2 *"), now: "11:00:00", want: "InvalidSchedule"},
		"suspended":                    {cronJob: newCronJob(hourly, suspended), now: "11:00:00"},
		"being deleted":                {cronJob: newCronJob(hourly, deleted), now: "11:00:00"},

		"within its deadline":           {cronJob: newCronJob(hourly, deadline(90)), now: "11:01:30", want: "create 11:00:00, again 1m0s"},
		"past its deadline":             {cronJob: newCronJob(hourly, deadline(90)), now: "11:01:31", want: "MissSchedule, again 1m0s"},
		"deadline of the end of time":   {cronJob: newCronJob(hourly, deadline(1<<63-1)), now: "12:01:31", want: "create 12:00:00, again 1m0s"},
		"@every, its deadline shorter":  {cronJob: newCronJob("@every 1h", deadline(10)), now: "11:00:31", want: "create 11:00:30, again 1m0s"},
		"@every, from the last":         {cronJob: newCronJob("@every 45s", last("10:02:00")), now: "10:05:02", want: "create 10:05:00, again 43.1s"},
		"@every, twice in a minute":     {cronJob: newCronJob("@every 15s", last("10:02:00"), active("10:02:00")), jobs: jobs(jobOf(of, "10:02:00", "")), now: "10:02:15", want: "active 10:02, again 15.1s"},
		"the clock was set back":        {cronJob: newCronJob(hourly, last("15:00:00")), now: "11:00:00", want: "again 1m0s"},
		"created in the future":         {cronJob: newCronJob(hourly), now: "09:00:00", want: "again 1m0s"},
		"new schedule, its time was":    {cronJob: newCronJob("0,30 * * * *", last("11:00:00")), edited: "11:31:00", now: "11:32:00", want: "again 1m0s"},
		"new schedule, its time is":     {cronJob: newCronJob("0,30 * * * *", last("11:00:00")), edited: "11:29:00", now: "11:30:00", want: "create 11:30:00, again 1m0s"},
		"new @every counts from before": {cronJob: newCronJob("@every 1h", last("11:00:00")), edited: "11:20:00", now: "12:00:00", want: "create 12:00:00, again 1m0s"},

		"one goes on, allowed":    {cronJob: newCronJob(hourly, last("11:00:00"), active("11:00:00")), jobs: jobs(jobOf(of, "11:00:00", "")), now: "12:00:00", want: "create 12:00:00, active 11:00, again 1m0s"},
		"one goes on, forbidden":  {cronJob: newCronJob(hourly, forbid, last("11:00:00"), active("11:00:00")), jobs: jobs(jobOf(of, "11:00:00", "")), now: "12:00:00", want: "active 11:00, JobAlreadyActive, again 1m0s"},
		"one goes on, replaced":   {cronJob: newCronJob(hourly, replace, last("11:00:00"), active("11:00:00")), jobs: jobs(jobOf(of, "11:00:00", "")), now: "12:00:00", want: "replace 11:00, create 12:00:00, active 11:00, again 1m0s"},
		"one ended, forbidden":    {cronJob: newCronJob(hourly, forbid, last("11:00:00"), active("11:00:00")), jobs: jobs(jobOf(of, "11:00:00", failed)), now: "12:00:00", want: "create 12:00:00, SawCompletedJob, again 1m0s"},
		"one went, forbidden":     {cronJob: newCronJob(hourly, forbid, last("11:00:00"), active("11:00:00")), now: "12:00:00", want: "create 12:00:00, MissingJob, again 1m0s"},
		"one was forgotten":       {cronJob: newCronJob(hourly, forbid), jobs: jobs(jobOf(of, "11:00:00", "")), now: "11:30:00", want: "active 11:00, last 11:00:00, again 1m0s"},
		"one was long forgotten":  {cronJob: newCronJob(hourly, forbid), jobs: jobs(jobOf(of, "11:00:00", "")), now: "12:00:00", want: "active 11:00, last 11:00:00, JobAlreadyActive, again 1m0s"},
		"one was forgotten, done": {cronJob: newCronJob(hourly, limits(0, 0)), jobs: jobs(jobOf(of, "11:00:00", complete)), now: "11:30:00", want: "last 11:00:00, success 11:01:00, expire 11:00, again 1m0s"},
		"a forgotten one goes":    {cronJob: newCronJob(hourly, forbid), jobs: jobs(terminating), now: "11:30:00", want: "last 11:00:00, again 1m0s"},
		"one of the future":       {cronJob: newCronJob(hourly), jobs: jobs(jobOf(of, "12:00:00", "")), now: "10:59:30", want: "again 30.1s"},
		"one by hand":             {cronJob: newCronJob(hourly, forbid, suspended), jobs: jobs(byHand(of, "hand", "")), now: "11:00:00", want: "UnexpectedJob"},
		"one by hand, done":       {cronJob: newCronJob(hourly, suspended), jobs: jobs(byHand(of, "hand", complete)), now: "11:00:00", want: "success 10:01:45"},
		"one done while deleted":  {cronJob: newCronJob(hourly, deleted, last("11:00:00"), active("11:00:00")), jobs: jobs(jobOf(of, "11:00:00", complete)), now: "12:00:00", want: "success 11:01:00, SawCompletedJob"},
		"beyond the limits": {cronJob: newCronJob(hourly, limits(1, 2), last("15:00:00")), jobs: jobs(jobOf(of, "11:00:00", complete), jobOf(of, "12:00:00", failed),
			jobOf(of, "13:00:00", failed), jobOf(of, "14:00:00", failed), jobOf(of, "15:00:00", complete)), now: "15:01:00", want: "success 15:01:00, expire 11:00 12:00, again 1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			var edited time.Time
			if c.edited != "" {
				edited = at(c.edited)
			}
			got := strings.Join(said(c.cronJob, plan(c.cronJob, c.jobs, edited, at(c.now))), ", ")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestJobOfATime: what the Job is made of.
func TestJobOfATime(t *testing.T) {
	cronJob := newCronJob("0 * * * *", inZone("Asia/Kolkata"))
	job := newJob(cronJob, at("11:00:00"))
	want := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("c-%d", at("11:00:00").Unix()/60), Namespace: "ns", Labels: map[string]string{"a": "b"},
			Annotations: map[string]string{"x": "y", "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-03-02T16:30:00+05:30"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "batch/v1", Kind: "CronJob", Name: "c", UID: "the-cronjob", Controller: new(true), BlockOwnerDeletion: new(true)}},
		},
		Spec: batchv1.JobSpec{Parallelism: new(int32(2))},
	}
	if diff := cmp.Diff(want, job); diff != "" {
		t.Error(diff)
	}
	if _, ours := scheduledAt(cronJob, job); !ours || cronJob.Spec.JobTemplate.Annotations[batchv1.CronJobScheduledTimestampAnnotation] != "" {
		t.Error("the template has changed, or the Job is not known again")
	}
	job.Name = "other"
	if _, ours := scheduledAt(cronJob, job); ours {
		t.Error("a copy under another name is the Job of its time")
	}
}
