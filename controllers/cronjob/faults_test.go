package cronjob

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// A fault is what happens at one write of the controller.
type fault string

const (
	none        fault = ""
	refused     fault = "refused"              // nothing is written
	lostAnswer  fault = "written, answer lost" // it is written, and the controller gets an error
	crashBefore fault = "crash before it"      // the term ends, and another begins
	crashAfter  fault = "crash after it"       // the same, but it is written
)

// faulty is a world whose controller's writes meet faults, and whose caches may lag.
type faulty struct {
	world
	// next decides about the next write.
	next func() fault
	// lag is by how much an event of the caches may be late; zero for never.
	lag func() time.Duration

	user   atomic.Bool // it is not the controller that writes
	mu     sync.Mutex
	dead   bool // the term has ended: the store refuses what it still sends
	starts []start
	stop   context.CancelFunc // of the term
	done   chan error
}

// start is a Job that was created.
type start struct {
	job  *batchv1.Job
	when time.Time
	// beside is how many others went on.
	beside int
}

func newFaulty(t *testing.T, next func() fault, lag func() time.Duration) *faulty {
	f := &faulty{world: world{reconciletest.New(t), t}, next: next, lag: lag}
	f.Client.PrependReactor("*", "*", f.react)
	if lag != nil {
		f.Client.PrependWatchReactor("*", f.watch)
	}
	f.Warm(New())
	f.Start()
	f.begin()
	return f
}

// begin starts a term.
func (f *faulty) begin() {
	ctx, cancel := context.WithCancel(f.Context())
	f.mu.Lock()
	f.stop, f.done, f.dead = cancel, make(chan error, 1), false
	f.mu.Unlock()
	done := f.done
	go func() { done <- New().Start(ctx, f.Env()) }()
}

// end ends a term.
func (f *faulty) end() {
	f.mu.Lock()
	f.dead = true
	f.stop()
	f.mu.Unlock()
	if err := <-f.done; err != nil {
		f.t.Error(err)
	}
}

// restart begins another term if one has ended, once the caches have all that the former has written.
func (f *faulty) restart() {
	f.mu.Lock()
	dead := f.dead
	f.mu.Unlock()
	if dead {
		f.end()
		time.Sleep(lagMax)
		f.begin()
		f.Settle()
	}
}

// crash ends the term now; restart begins another.
func (f *faulty) crash() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dead = true
	f.stop()
}

// byUser calls f as somebody whose writes meet no faults.
func (f *faulty) byUser(write func()) {
	f.user.Store(true)
	defer f.user.Store(false)
	write()
}

// react decides about one call of the client.
func (f *faulty) react(a clienttesting.Action) (handled bool, ret runtime.Object, err error) {
	if verb := a.GetVerb(); verb == "get" || verb == "list" || verb == "watch" || f.user.Load() {
		return false, nil, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		return true, nil, apierrors.NewInternalError(errors.New("refused"))
	}
	fault := f.next()
	if fault == none {
		return f.apply(a)
	}
	if fault == lostAnswer || fault == crashAfter {
		_, _, _ = f.apply(a) // the answer is lost
	}
	if fault == crashBefore || fault == crashAfter {
		f.dead = true
		f.stop()
	}
	return true, nil, apierrors.NewTimeoutError("the answer is lost", 0)
}

// apply does what the world does without a fault.
func (f *faulty) apply(a clienttesting.Action) (handled bool, ret runtime.Object, err error) {
	beside := 0
	if a.GetVerb() == "create" {
		beside = f.goOn()
	}
	for _, reactor := range f.Client.ReactionChain[1:] {
		if !reactor.Handles(a) {
			continue
		}
		if handled, ret, err = reactor.React(a); handled {
			break
		}
	}
	if create, ok := a.(clienttesting.CreateAction); ok && err == nil && a.GetVerb() == "create" {
		f.starts = append(f.starts, start{create.GetObject().(*batchv1.Job).DeepCopy(), time.Now(), beside})
	}
	return handled, ret, err
}

// goOn is how many Jobs have not ended.
func (f *faulty) goOn() (n int) {
	kind := batchv1.SchemeGroupVersion.WithKind("Job")
	list := must(f.Client.Tracker().List(batchv1.SchemeGroupVersion.WithResource("jobs"), kind, "ns"))
	for _, job := range list.(*batchv1.JobList).Items {
		if endOf(&job) == "" {
			n++
		}
	}
	return n
}

// lagMax is the longest lag of a cache.
const lagMax = 3 * time.Second

// watch delays the events of a watch.
func (f *faulty) watch(a clienttesting.Action) (bool, watch.Interface, error) {
	inner, err := f.Watch(a)
	if err != nil {
		return true, nil, err
	}
	late := &lateWatch{inner: inner, out: make(chan watch.Event), stopped: make(chan struct{})}
	go late.run(f.lag)
	return true, late, nil
}

type lateWatch struct {
	inner   watch.Interface
	out     chan watch.Event
	once    sync.Once
	stopped chan struct{}
}

func (w *lateWatch) run(lag func() time.Duration) {
	defer close(w.out)
	for e := range w.inner.ResultChan() {
		timer := time.NewTimer(lag())
		select {
		case <-w.stopped:
			return
		case <-timer.C:
		}
		select {
		case <-w.stopped:
			return
		case w.out <- e:
		}
	}
}

func (w *lateWatch) ResultChan() <-chan watch.Event { return w.out }

func (w *lateWatch) Stop() {
	w.once.Do(func() {
		close(w.stopped)
		w.inner.Stop()
	})
}

// TestOneJobForEachTime: whatever write of the controller fails, and however, with caches that lag or not, there is one
// Job for each time, and the same status in the end.
func TestOneJobForEachTime(t *testing.T) {
	for _, s := range []struct {
		name    string
		cronJob func() *batchv1.CronJob
		want    []int // minutes of the times of all Jobs
		left    []int // those of Jobs that are there in the end
	}{
		{"history", func() *batchv1.CronJob { return newCronJob("*/10 * * * *", limits(0, 0)) }, []int{10, 20}, nil},
		{"forbid", func() *batchv1.CronJob { return newCronJob("*/10 * * * *", policy(batchv1.ForbidConcurrent)) }, []int{10, 20}, []int{10, 20}},
		{"replace", func() *batchv1.CronJob {
			return newCronJob("*/5 * * * *", policy(batchv1.ReplaceConcurrent), limits(1, 0))
		},
			[]int{5, 10, 15, 20}, []int{20}},
	} {
		for _, lag := range []func() time.Duration{nil, func() time.Duration { return time.Second }} {
			total := runWithFault(t, s.cronJob(), 0, none, lag, namesOf(s.want), namesOf(s.left))
			t.Logf("%s: %d writes", s.name, total)
			kinds := []fault{refused, lostAnswer, crashBefore, crashAfter}
			if lag != nil {
				kinds = []fault{lostAnswer, crashAfter} // what the caches may not show
			}
			for _, kind := range kinds {
				for at := 1; at <= total; at++ {
					runWithFault(t, s.cronJob(), at, kind, lag, namesOf(s.want), namesOf(s.left))
					if t.Failed() {
						t.Fatalf("%s, write %d of %d: %s; lag: %v", s.name, at, total, kind, lag != nil)
					}
				}
			}
		}
	}
}

// namesOf are names of Jobs.
func namesOf(minutes []int) (names []string) {
	for _, n := range minutes {
		names = append(names, name(time.Duration(n)*time.Minute))
	}
	return names
}

// runWithFault runs a CronJob for 24 minutes, and returns the number of writes.
func runWithFault(t *testing.T, cronJob *batchv1.CronJob, at int, kind fault, lag func() time.Duration, want, left []string) (writes int) {
	synctest.Test(t, func(t *testing.T) {
		next := func() fault {
			if writes++; writes == at {
				return kind
			}
			return none
		}
		f := newFaulty(t, next, lag)
		f.byUser(func() { f.add(cronJob) })
		for minute := 1; minute <= 24; minute++ {
			time.Sleep(time.Minute)
			synctest.Wait()
			f.restart()
			if minute%10 == 2 {
				f.byUser(f.endAll)
			}
		}
		f.end()
		var got []string
		for _, s := range f.starts { // no term runs any more
			got = append(got, s.job.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Jobs: %s", diff)
		}
		f.expectJobs(left...)
		f.expectActive()
		status := f.cronJob().Status
		if end := time.Date(2000, time.January, 1, 0, 20, 0, 0, time.UTC); !status.LastScheduleTime.Time.Equal(end) || !status.LastSuccessfulTime.After(end) {
			t.Errorf("last %v, successful %v", status.LastScheduleTime, status.LastSuccessfulTime)
		}
	})
	return writes
}

// endAll ends the Jobs that go on.
func (f *faulty) endAll() {
	for _, job := range f.jobs() {
		if endOf(&job) == "" {
			f.finish(job.Name, batchv1.JobComplete)
		}
	}
}

// randomFaults are faults of a part of the writes.
func randomFaults(rng *rand.Rand, part float64) func() fault {
	return func() fault {
		if rng.Float64() >= part {
			return none
		}
		return []fault{refused, lostAnswer, crashBefore, crashAfter}[rng.IntN(4)]
	}
}

// randomLag lets each event of a cache be late.
func randomLag(rng *rand.Rand) func() time.Duration {
	var mu sync.Mutex // of two caches
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(rng.Int64N(int64(lagMax / 8)))
	}
}
