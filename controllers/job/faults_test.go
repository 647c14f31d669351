package job

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// A fault is what happens at one write of the controller.
type fault string

const (
	refused     fault = "refused"                  // nothing is written
	lostAnswer  fault = "written, answer lost"     // it is written, and the controller gets an error
	crashBefore fault = "crash before it"          // the term ends, and another begins
	crashAfter  fault = "crash after it"           // the same, but it is written
	refusedFrom fault = "refused for half an hour" // and all writes after it
)

// faulty is a world in which one write meets a fault.
type faulty struct {
	world
	at      int // which write
	fault   fault
	writes  int // so far
	created int32
	calmAt  time.Time
	stop    context.CancelFunc // of the term
	done    chan error
	dead    bool // the term has ended: the store refuses what it still sends
}

// begin starts a term.
func (f *faulty) begin() {
	ctx, cancel := context.WithCancel(f.Context())
	f.stop, f.done, f.dead = cancel, make(chan error, 1), false
	done := f.done
	go func() { done <- New().Start(ctx, f.Env()) }()
}

// endTerm ends a term.
func (f *faulty) endTerm() {
	f.stop()
	if err := <-f.done; err != nil {
		f.t.Error(err)
	}
}

// react decides about one call of the client. The clientset holds its lock meanwhile.
func (f *faulty) react(a clienttesting.Action) (handled bool, ret runtime.Object, err error) {
	if verb := a.GetVerb(); verb == "get" || verb == "list" || verb == "watch" {
		return false, nil, nil
	}
	f.writes++
	if f.writes != f.at {
		if f.dead || f.fault == refusedFrom && f.at > 0 && f.writes > f.at && time.Now().Before(f.calmAt) {
			return true, nil, apierrors.NewInternalError(errors.New("refused"))
		}
		return f.apply(a)
	}
	f.calmAt = time.Now().Add(30 * time.Minute)
	switch f.fault {
	case lostAnswer, crashAfter:
		_, _, _ = f.apply(a) // the answer is lost
	case refused, refusedFrom, crashBefore:
	}
	if f.fault == crashBefore || f.fault == crashAfter {
		f.dead = true
		f.stop()
	}
	return true, nil, apierrors.NewTimeoutError("the answer is lost", 0)
}

// apply does what the world does without a fault.
func (f *faulty) apply(a clienttesting.Action) (handled bool, ret runtime.Object, err error) {
	for _, reactor := range f.Client.ReactionChain[1:] {
		if !reactor.Handles(a) {
			continue
		}
		if handled, ret, err = reactor.React(a); handled {
			break
		}
	}
	if err == nil && a.GetVerb() == "create" && a.GetResource().Resource == "pods" {
		f.created++
	}
	return handled, ret, err
}

// A shape is a Job and how its pods end.
type shape struct {
	name    string
	job     func() *batchv1.Job
	fails   float64 // which part of the pods
	suspend bool    // for a while in the middle
	// allFail says that each pod of the Job that did not succeed counts as failed, also one that was stopped.
	allFail bool
}

var shapes = []shape{
	{name: "completions", fails: 0.3, job: func() *batchv1.Job { return newJob(3, completions(6), backoffLimit(100)) }},
	{name: "indexes", fails: 0.3, job: func() *batchv1.Job { return newJob(3, completions(6), withIndexes, backoffLimit(100)) }},
	{name: "limit for each index", fails: 0.5, job: func() *batchv1.Job { return newJob(2, completions(4), perIndex(2)) }},
	{name: "work queue", fails: 0.3, job: func() *batchv1.Job {
		return newJob(3, backoffLimit(100), func(spec *batchv1.JobSpec) { spec.Completions = nil })
	}},
	{name: "suspended", fails: 0.2, suspend: true, job: func() *batchv1.Job { return newJob(3, completions(6), backoffLimit(100)) }},
	{name: "fails", fails: 1, allFail: true, job: func() *batchv1.Job { return newJob(3, completions(9), backoffLimit(3)) }},
}

// TestEachPodIsCountedOnce: whatever write of the controller fails, and however, a Job ends with the counts of what really
// ended, and with never more active pods than it wants.
func TestEachPodIsCountedOnce(t *testing.T) {
	for _, s := range shapes {
		total := runWithFault(t, s, 0, "")
		t.Logf("%s: %d writes", s.name, total)
		for _, kind := range []fault{refused, lostAnswer, crashBefore, crashAfter, refusedFrom} {
			for at := 1; at <= total; at++ {
				runWithFault(t, s, at, kind)
				if t.Failed() {
					t.Fatalf("%s, write %d of %d: %s", s.name, at, total, kind)
				}
			}
		}
	}
}

// runWithFault runs a Job to its end, and returns the number of writes.
func runWithFault(t *testing.T, s shape, at int, kind fault) (writes int) {
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{world: world{reconciletest.New(t), t}, at: at, fault: kind}
		f.Warm(New())
		f.Client.PrependReactor("*", "*", f.react)
		f.Start()
		f.begin()
		reconciletest.Add(f.World, s.job())
		rng := rand.New(rand.NewPCG(1, 2))
		var succeeded, failed int32
		for step := 0; !finished(f.job()); step++ {
			if step == 300 {
				t.Fatalf("does not end: %s", summary(f.job()))
			}
			time.Sleep(11 * time.Minute) // all pauses are over
			f.Settle()
			if f.dead {
				f.endTerm()
				f.begin()
				continue
			}
			if s.suspend && (step == 2 || step == 4) {
				f.suspend(step == 2)
			}
			running := f.running()
			if parallelism := int(*f.job().Spec.Parallelism); len(running) > parallelism {
				t.Fatalf("%d active pods, want %d at most", len(running), parallelism)
			}
			for range 2 {
				s, n := f.endOne(rng, s.fails)
				succeeded, failed = succeeded+s, failed+n
			}
		}
		f.endTerm()
		if s.allFail {
			failed = f.created - succeeded
		}
		if status := f.job().Status; status.Succeeded != succeeded || status.Failed != failed {
			t.Errorf("%s; in truth %d succeeded and %d failed", summary(f.job()), succeeded, failed)
		}
		writes = f.writes
	})
	return writes
}

// endOne ends a running pod and tells what the Job has to count.
func (f *faulty) endOne(rng *rand.Rand, fails float64) (succeeded, failed int32) {
	running := f.running()
	if len(running) == 0 {
		return 0, 0
	}
	code := int32(0)
	if rng.Float64() < fails {
		code = 1
	}
	f.Put(ended(running[0], code))
	f.Settle()
	switch {
	case !tracked(running[0]):
		return 0, 0
	case code == 0:
		return 1, 0
	}
	return 0, 1
}

// suspend changes the Job past the faults.
func (f *faulty) suspend(to bool) {
	job := f.job()
	job.Spec.Suspend = &to
	job.Generation++
	job.ResourceVersion = fmt.Sprint(1_000_000 + job.Generation)
	if err := f.Client.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("jobs"), job, "ns"); err != nil {
		f.t.Fatal(err)
	}
	f.Settle()
}
