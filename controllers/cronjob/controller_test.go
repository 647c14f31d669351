package cronjob

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// world is a world with one CronJob in it.
type world struct {
	*reconciletest.World
	t *testing.T
}

// bubble runs a body over a world whose CronJob is created at midnight.
func bubble(t *testing.T, cronJob *batchv1.CronJob, body func(w world)) {
	synctest.Test(t, func(t *testing.T) {
		w := world{reconciletest.New(t), t}
		w.Numbers = &numbers.Ledger{}
		w.Run(New())
		w.add(cronJob)
		body(w)
	})
}

// add adds a CronJob that is new.
func (w world) add(cronJob *batchv1.CronJob) {
	cronJob.CreationTimestamp = metav1.Time{}
	reconciletest.Add(w.World, cronJob)
	w.Settle()
	w.Writes()
}

func (w world) cronJob() *batchv1.CronJob {
	w.t.Helper()
	return must(w.Client.BatchV1().CronJobs("ns").Get(w.t.Context(), "c", metav1.GetOptions{}))
}

// jobs are all Jobs, by name.
func (w world) jobs() []batchv1.Job {
	w.t.Helper()
	return must(w.Client.BatchV1().Jobs("ns").List(w.t.Context(), metav1.ListOptions{})).Items
}

// update changes the CronJob as a user would.
func (w world) update(change func(cronJob *batchv1.CronJob)) {
	w.t.Helper()
	cronJob := w.cronJob()
	change(cronJob)
	must(w.Client.BatchV1().CronJobs("ns").Update(w.t.Context(), cronJob, metav1.UpdateOptions{}))
	w.Settle()
}

// end ends a Job as its controller would.
func (w world) end(name string, end batchv1.JobConditionType) {
	w.t.Helper()
	w.finish(name, end)
	w.Settle()
}

func (w world) finish(name string, end batchv1.JobConditionType) {
	w.t.Helper()
	job := must(w.Client.BatchV1().Jobs("ns").Get(w.t.Context(), name, metav1.GetOptions{}))
	finish(job, end, time.Now().Truncate(time.Second))
	must(w.Client.BatchV1().Jobs("ns").UpdateStatus(w.t.Context(), job, metav1.UpdateOptions{}))
}

func (w world) expectJobs(want ...string) {
	w.t.Helper()
	var got []string
	for _, job := range w.jobs() {
		got = append(got, job.Name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Error(diff)
	}
}

func (w world) expectActive(want ...string) {
	w.t.Helper()
	var got []string
	for _, ref := range w.cronJob().Status.Active {
		got = append(got, ref.Name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Error(diff)
	}
}

func (w world) expectWrites(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.Writes()); diff != "" {
		w.t.Error(diff)
	}
}

func (w world) expectEvents(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.Events.List()); diff != "" {
		w.t.Error(diff)
	}
}

// name is the name of the Job of a time after midnight of the bubble.
func name(after time.Duration) string {
	return jobName(newCronJob(""), time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC).Add(after))
}

// expectSkews wants so many Jobs to have been created, all together so many whole minutes late.
func (w world) expectSkews(jobs uint64, minutes int) {
	w.t.Helper()
	got := &dto.Metric{}
	if err := w.Numbers.Series().CronJobSkew.Write(got); err != nil {
		w.t.Fatal(err)
	}
	if h := got.Histogram; h.GetSampleCount() != jobs || int(h.GetSampleSum()/60) != minutes {
		w.t.Errorf("%v Jobs were %v seconds late, want %v and %v minutes", h.GetSampleCount(), h.GetSampleSum(), jobs, minutes)
	}
}

// TestLifeOfACronJob: a Job at its time, its end in the status, and not a write in between.
func TestLifeOfACronJob(t *testing.T) {
	bubble(t, newCronJob("0 * * * *", limits(1, 1)), func(w world) {
		w.expectEvents()
		time.Sleep(time.Hour)
		w.expectWrites("create jobs ns/"+name(time.Hour), "update cronjobs/status ns/c")
		w.expectEvents("Normal SuccessfulCreate Created job " + name(time.Hour))
		w.expectActive(name(time.Hour))
		time.Sleep(10 * time.Minute)
		w.expectWrites()

		w.end(name(time.Hour), batchv1.JobComplete)
		w.expectWrites("update jobs/status ns/"+name(time.Hour), "update cronjobs/status ns/c")
		w.expectEvents("Normal SawCompletedJob Saw completed job: " + name(time.Hour) + ", condition: Complete")
		w.expectActive()
		time.Sleep(time.Hour)
		w.expectWrites("create jobs ns/"+name(2*time.Hour), "update cronjobs/status ns/c")
		w.end(name(2*time.Hour), batchv1.JobComplete)
		w.expectWrites("update jobs/status ns/"+name(2*time.Hour), "update cronjobs/status ns/c", "delete jobs ns/"+name(time.Hour))
		w.expectEvents("Normal SuccessfulCreate Created job "+name(2*time.Hour),
			"Normal SawCompletedJob Saw completed job: "+name(2*time.Hour)+", condition: Complete", "Normal SuccessfulDelete Deleted job "+name(time.Hour))
		w.expectJobs(name(2 * time.Hour))

		w.update(suspended)
		w.Writes()
		time.Sleep(5 * time.Hour)
		w.expectWrites()
		w.update(func(cronJob *batchv1.CronJob) { cronJob.Spec.Suspend = new(false) })
		w.expectJobs(name(2*time.Hour), name(7*time.Hour)) // only the latest of those that were missed
		w.expectSkews(3, 10)
	})
}

// TestConcurrency: what happens at the next time while a Job goes on.
func TestConcurrency(t *testing.T) {
	hour, second := name(time.Hour), name(2*time.Hour)
	bubble(t, newCronJob("0 * * * *"), func(w world) {
		time.Sleep(2 * time.Hour)
		w.expectActive(hour, second)
	})
	bubble(t, newCronJob("0 * * * *", policy(batchv1.ReplaceConcurrent)), func(w world) {
		time.Sleep(2 * time.Hour)
		w.expectActive(second)
		w.expectJobs(second)
		w.expectWrites("create jobs ns/"+hour, "update cronjobs/status ns/c", "delete jobs ns/"+hour, "create jobs ns/"+second, "update cronjobs/status ns/c")
	})
	bubble(t, newCronJob("0 * * * *", policy(batchv1.ForbidConcurrent)), func(w world) {
		time.Sleep(2*time.Hour + 30*time.Minute)
		w.expectEvents("Normal SuccessfulCreate Created job "+hour,
			"Normal JobAlreadyActive Not starting job because prior execution is running and concurrency policy is Forbid")
		w.expectActive(hour)
		w.end(hour, batchv1.JobFailed)
		w.expectActive(second) // half an hour late: there is no deadline
	})
}

// TestJobByHand, as kubectl create job --from makes it: it counts as success and in the history, and forbids nothing.
func TestJobByHand(t *testing.T) {
	bubble(t, newCronJob("0 * * * *", policy(batchv1.ForbidConcurrent)), func(w world) {
		reconciletest.Add(w.World, byHand(w.cronJob(), "hand", ""))
		time.Sleep(time.Hour)
		w.expectEvents("Warning UnexpectedJob Saw a job that the controller did not create or forgot: hand", "Normal SuccessfulCreate Created job "+name(time.Hour))
		w.expectActive(name(time.Hour))
		w.end("hand", batchv1.JobComplete)
		if w.cronJob().Status.LastSuccessfulTime == nil {
			t.Error("its success is not in the status")
		}
	})
}

// TestNameThatIsTaken: a Job of somebody else stays, and the CronJob goes on at its next time.
func TestNameThatIsTaken(t *testing.T) {
	bubble(t, newCronJob("0 * * * *"), func(w world) {
		reconciletest.Add(w.World, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name(time.Hour), Namespace: "ns"}})
		time.Sleep(time.Hour + time.Second)
		w.expectActive()
		time.Sleep(time.Hour)
		w.expectActive(name(2 * time.Hour))
	})
}

// TestEntriesOfOtherNamespaces: a status that somebody wrote deletes no Job that is none of the CronJob's business.
func TestEntriesOfOtherNamespaces(t *testing.T) {
	cronJob := newCronJob("0 * * * *", policy(batchv1.ReplaceConcurrent))
	foreign := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "foreign", Namespace: "other", UID: "foreign"}}
	cronJob.Status.Active = append(cronJob.Status.Active, refTo(foreign))
	synctest.Test(t, func(t *testing.T) {
		w := world{reconciletest.New(t), t}
		w.Run(New())
		reconciletest.Add(w.World, foreign)
		w.add(cronJob)
		w.expectEvents("Normal MissingJob Active job went missing: foreign")
		time.Sleep(time.Hour)
		if _, err := w.Client.BatchV1().Jobs("other").Get(t.Context(), "foreign", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// TestNewSchedule begins with its next time: what it would have done today is over.
func TestNewSchedule(t *testing.T) {
	bubble(t, newCronJob("0 0 * * *"), func(w world) {
		time.Sleep(10 * time.Hour)
		w.update(func(cronJob *batchv1.CronJob) { cronJob.Spec.Schedule = "0 6 * * *" })
		time.Sleep(time.Hour)
		w.expectJobs()
		w.update(func(cronJob *batchv1.CronJob) { cronJob.Spec.Schedule = "*/5 * * * *" })
		w.expectJobs()
		time.Sleep(5 * time.Minute)
		w.expectJobs(name(11*time.Hour + 5*time.Minute))
	})
}

// TestClockJumps: timers do not notice, so the CronJob looks at the wall clock. Whatever it shows, no Jobs pile up.
func TestClockJumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world{reconciletest.New(t), t}
		var offset atomic.Int64
		w.Run(reconcile.Controller{Name: "cronjob-controller", Reads: New().Reads, Run: func(ctx context.Context, env *reconcile.Env) error {
			return runBy(ctx, env, func() time.Time { return time.Now().Add(time.Duration(offset.Load())) })
		}})
		w.add(newCronJob("0 * * * *"))
		const year = 365 * 24 * time.Hour
		jump := func(by time.Duration) {
			t.Helper()
			offset.Add(int64(by))
			time.Sleep(sleepMax + time.Second)
			w.Settle()
		}
		time.Sleep(time.Hour)
		want := []string{name(time.Hour)}
		for _, c := range []struct {
			by  time.Duration
			job string // it starts
		}{
			{by: 2 * time.Hour, job: name(3 * time.Hour)},
			{by: -2 * time.Hour},
			{by: year, job: name(year + time.Hour)},
			{by: -year},
			{by: -10 * year},
			{by: 10 * year},
			{by: year},
			{by: 20 * year, job: name(21*year + time.Hour)},
		} {
			w.Writes()
			jump(c.by)
			if c.job != "" {
				want = append(want, c.job)
			}
			var got []string
			for _, job := range w.jobs() {
				got = append(got, job.Name)
			}
			if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))); diff != "" {
				t.Fatalf("a jump of %s: %s", c.by, diff)
			}
			if writes := w.Writes(); len(writes) > 2 {
				t.Errorf("a jump of %s: %s", c.by, strings.Join(writes, ", "))
			}
		}
		time.Sleep(time.Hour)
		w.expectActive(append(want, name(21*year+2*time.Hour))...)
	})
}
