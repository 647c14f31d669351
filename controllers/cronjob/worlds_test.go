package cronjob

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// wish is what a user wanted from a moment on.
type wish struct {
	since time.Time
	calendar
	policy    batchv1.ConcurrencyPolicy
	suspended bool
	deadline  time.Duration // negative for none
	// edited is when the schedule became this one.
	edited time.Time
}

// generated is a generated world: a CronJob whose user changes it, Jobs that end, and a controller that fails.
type generated struct {
	*faulty
	rng    *rand.Rand
	calm   atomic.Bool // no write meets a fault
	wishes []wish
	born   time.Time
	// success is when a Job succeeded last.
	success time.Time
	judged  int // starts
}

// changesOfTime are nights on which clocks change, in UTC.
var changesOfTime = []time.Time{
	time.Date(2000, time.March, 26, 0, 0, 0, 0, time.UTC), time.Date(2000, time.October, 29, 0, 0, 0, 0, time.UTC),
	time.Date(2000, time.April, 2, 6, 0, 0, 0, time.UTC), time.Date(2000, time.October, 29, 5, 0, 0, 0, time.UTC),
	time.Date(2000, time.March, 25, 15, 0, 0, 0, time.UTC),
}

// TestGeneratedWorlds: what a controller that fails at random writes does, judged by a model that knows nothing but what
// was wanted when, and which minutes are of the schedule.
func TestGeneratedWorlds(t *testing.T) {
	starts := 0
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) { starts += generate(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d Jobs", starts)
	if starts < 150 {
		t.Errorf("only %d Jobs were started", starts)
	}
}

func generate(t *testing.T, seed uint64) (starts int) {
	rng := rand.New(rand.NewPCG(seed, 1))
	time.Sleep(time.Until(changesOfTime[rng.IntN(len(changesOfTime))]))
	g := &generated{rng: rng, born: time.Now()}
	faults, lag := randomFaults(rand.New(rand.NewPCG(seed, 2)), 0.15), randomLag(rand.New(rand.NewPCG(seed, 3)))
	next := func() fault {
		if g.calm.Load() {
			return none
		}
		return faults()
	}
	g.faulty = newFaulty(t, next, lag)
	g.wish(func(w *wish) { w.calendar, w.policy, w.deadline = g.newCalendar(), batchv1.AllowConcurrent, -1 })
	reconciletest.Add(g.World, newCronJob(g.wishes[0].schedule, inZone(g.wishes[0].zone.String()), limits(2, 1), func(cronJob *batchv1.CronJob) {
		cronJob.CreationTimestamp = metav1.NewTime(g.born)
	}))
	for range 40 {
		g.step()
		g.judgeStarts()
		if rng.IntN(3) == 0 {
			g.rest()
			g.judgeState()
			g.deleteOne()
		}
	}
	g.judgeSilence()
	return len(g.all())
}

func (g *generated) newCalendar() calendar {
	return newCalendar(g.rng, zones[g.rng.IntN(len(zones))], true)
}

// wish notes what is wanted from now on.
func (g *generated) wish(change func(w *wish)) wish {
	var w wish
	if len(g.wishes) > 0 {
		w = g.wishes[len(g.wishes)-1]
	}
	w.since = time.Now()
	change(&w)
	g.wishes = append(g.wishes, w)
	return w
}

// step lets time go by, and does what somebody may do.
func (g *generated) step() {
	span := []time.Duration{5 * time.Second, time.Minute, 20 * time.Minute}[g.rng.IntN(3)]
	time.Sleep(time.Duration(g.rng.Int64N(int64(span))))
	synctest.Wait()
	switch g.rng.IntN(8) {
	case 0:
		g.edit(func(w *wish) { w.suspended = !w.suspended && g.rng.IntN(2) == 0 })
	case 1:
		g.edit(func(w *wish) {
			w.policy = []batchv1.ConcurrencyPolicy{batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent}[g.rng.IntN(3)]
		})
	case 2:
		g.edit(func(w *wish) { w.deadline = []time.Duration{-1, 30 * time.Second, 10 * time.Minute}[g.rng.IntN(3)] })
	case 3:
		g.edit(func(w *wish) { w.calendar, w.edited = g.newCalendar(), time.Now() })
	case 4:
		g.crash()
	default:
		g.endSome()
	}
	synctest.Wait()
	g.restart()
}

// all are the Jobs that were started so far.
func (g *generated) all() []start {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.starts)
}

// edit changes the CronJob to another wish.
func (g *generated) edit(change func(w *wish)) {
	g.byUser(func() {
		w, cronJob := g.wish(change), g.cronJob()
		cronJob.Spec.Schedule, cronJob.Spec.TimeZone = w.schedule, new(w.zone.String())
		cronJob.Spec.Suspend, cronJob.Spec.ConcurrencyPolicy, cronJob.Spec.StartingDeadlineSeconds = &w.suspended, w.policy, nil
		if w.deadline >= 0 {
			cronJob.Spec.StartingDeadlineSeconds = new(int64(w.deadline / time.Second))
		}
		must(g.Client.BatchV1().CronJobs("ns").Update(g.t.Context(), cronJob, metav1.UpdateOptions{}))
	})
}

// endSome ends some of the Jobs that go on.
func (g *generated) endSome() {
	for _, job := range g.active() {
		end := []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed, ""}[g.rng.IntN(3)]
		if end == "" {
			continue
		}
		g.byUser(func() { g.finish(job.Name, end) })
		if end == batchv1.JobComplete {
			g.success = time.Now().Truncate(time.Second)
		}
	}
}

// active are the Jobs that have not ended.
func (g *generated) active() []batchv1.Job {
	return slices.DeleteFunc(g.jobs(), func(job batchv1.Job) bool { return endOf(&job) != "" })
}

// rest lets the controller do all that is to do, without faults.
func (g *generated) rest() {
	g.calm.Store(true)
	defer g.calm.Store(false)
	g.restart()
	time.Sleep(2*sleepMax + 2*lagMax)
	synctest.Wait()
	g.judgeStarts()
}

// deleteOne deletes a Job that the status knows.
func (g *generated) deleteOne() {
	if jobs := g.jobs(); len(jobs) > 0 && g.rng.IntN(3) == 0 {
		g.byUser(func() {
			if err := g.Client.BatchV1().Jobs("ns").Delete(g.t.Context(), jobs[g.rng.IntN(len(jobs))].Name, metav1.DeleteOptions{}); err != nil {
				g.t.Fatal(err)
			}
		})
	}
}

// judgeStarts judges the Jobs that were started since it was called last.
func (g *generated) judgeStarts() {
	g.t.Helper()
	starts := g.all()
	for ; g.judged < len(starts); g.judged++ {
		s := starts[g.judged]
		at := timeOf(s.job)
		for _, other := range starts[:g.judged] {
			if timeOf(other.job).Equal(at) {
				g.t.Errorf("two Jobs for %s", at)
			}
		}
		var why []string
		for i, w := range g.wishes { // those that the controller may have known
			if !w.since.After(s.when) && (i+1 == len(g.wishes) || g.wishes[i+1].since.Add(lagMax).After(s.when)) {
				why = append(why, g.objection(&w, s, at))
			}
		}
		if !slices.Contains(why, "") {
			g.t.Errorf("a Job for %s, started at %s: %q", at, s.when, why)
		}
	}
}

// objection is why a start is not what somebody wanted; empty if it is.
func (g *generated) objection(w *wish, s start, at time.Time) string {
	later, _ := w.latest(at, s.when)
	switch {
	case w.suspended:
		return "suspended"
	case !w.has(at):
		return fmt.Sprintf("none of the times of %q in %s", w.schedule, w.zone)
	case !at.After(g.born) || at.After(s.when):
		return "out of time"
	case !later.IsZero():
		return "there is a later one: " + later.String()
	case w.deadline >= 0 && s.when.Sub(at) > w.deadline:
		return "past its deadline"
	case w.policy != batchv1.AllowConcurrent && s.beside > 0:
		return fmt.Sprintf("%s, and %d others go on", w.policy, s.beside)
	}
	return ""
}

// timeOf is the time of a Job as its annotation says.
func timeOf(job *batchv1.Job) time.Time {
	return must(time.Parse(time.RFC3339, job.Annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"]))
}

// judgeState judges what there is when nothing is to do any more.
func (g *generated) judgeState() {
	g.t.Helper()
	status, now, w := g.cronJob().Status, time.Now(), &g.wishes[len(g.wishes)-1]
	var active, listed []string
	for _, job := range g.active() {
		active = append(active, job.Name)
	}
	for _, ref := range status.Active {
		listed = append(listed, ref.Name)
	}
	slices.Sort(listed)
	if diff := cmp.Diff(active, listed); diff != "" {
		g.t.Errorf("active: %s", diff)
	}
	base := g.born
	for _, s := range g.all() {
		base = latestOf(base, timeOf(s.job))
	}
	if last := status.LastScheduleTime; (last == nil) != (base == g.born) || last != nil && !last.Time.Equal(base) {
		g.t.Errorf("last %v, want %s", last, base)
	}
	if last := status.LastSuccessfulTime; (last == nil) != g.success.IsZero() || last != nil && !last.Time.Equal(g.success) {
		g.t.Errorf("last success %v, want %s", last, g.success)
	}
	count := map[batchv1.JobConditionType]int{}
	for _, job := range g.jobs() {
		count[endOf(&job)]++
	}
	if count[batchv1.JobComplete] > 2 || count[batchv1.JobFailed] > 1 {
		g.t.Errorf("history: %v", count)
	}
	due, n := w.latest(latestOf(base, w.edited), now.Add(-time.Second))
	late := w.deadline >= 0 && now.Sub(due) > w.deadline
	if blocked := w.policy == batchv1.ForbidConcurrent && len(active) > 0; n > 0 && !w.suspended && !blocked && !late {
		g.t.Errorf("nothing was started for %s", due)
	}
}

// judgeSilence wants no writes for a CronJob that is suspended, and none of a new term.
func (g *generated) judgeSilence() {
	g.t.Helper()
	g.edit(func(w *wish) { w.suspended = true })
	g.rest()
	g.calm.Store(true)
	g.judgeState()
	g.Writes()
	time.Sleep(time.Hour)
	g.end()
	g.begin()
	time.Sleep(time.Hour)
	if writes := g.Writes(); len(writes) > 0 {
		g.t.Errorf("nothing has changed, but it writes: %v", writes)
	}
	g.end()
}
