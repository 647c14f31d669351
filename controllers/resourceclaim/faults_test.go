package resourceclaim

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// A fault is what happens at one write of the controller.
type fault struct {
	name    string
	written bool // the API carries it out
	crash   bool // the term ends, and another begins
}

var faults = []fault{
	{"refused", false, false}, {"written, answer lost", true, false}, {"crash before it", false, true}, {"crash after it", true, true},
}

// lag is how late the events of all caches are.
const lag = 200 * time.Millisecond

// faulty is a world whose controller meets one fault at one of its writes.
type faulty struct {
	world
	at int // the write; 0: none
	fault

	mu     sync.Mutex
	user   bool // it is not the controller that writes
	writes int
	dead   bool
	stop   context.CancelFunc
	done   chan error
}

func newFaulty(t *testing.T, at int, fault fault, late bool) *faulty {
	f := &faulty{world: world{reconciletest.New(t), t}, at: at, fault: fault}
	f.Client.PrependReactor("*", "*", f.react)
	if late {
		f.Client.PrependWatchReactor("*", f.watch)
	}
	f.Warm(New())
	f.Start()
	f.begin()
	return f
}

func (f *faulty) begin() {
	ctx, cancel := context.WithCancel(f.Context())
	f.mu.Lock()
	f.stop, f.done, f.dead = cancel, make(chan error, 1), false
	f.mu.Unlock()
	done := f.done
	go func() { done <- New().Start(ctx, f.Env()) }()
}

// turn lets some time pass, and starts a term again that has ended once the caches have all that the former has written.
func (f *faulty) turn() {
	time.Sleep(time.Minute)
	f.mu.Lock()
	dead := f.dead
	f.mu.Unlock()
	if dead {
		f.end()
		f.begin()
		time.Sleep(time.Minute)
	}
	synctest.Wait()
}

func (f *faulty) end() {
	f.stop()
	if err := <-f.done; err != nil {
		f.t.Error(err)
	}
}

// by calls write as somebody whose writes meet no faults.
func (f *faulty) by(write func() error) {
	f.t.Helper()
	f.setUser(true)
	defer f.setUser(false)
	if err := write(); err != nil {
		f.t.Fatal(err)
	}
}

func (f *faulty) setUser(user bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.user = user
}

func (f *faulty) react(a clienttesting.Action) (bool, runtime.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if verb := a.GetVerb(); verb == "get" || verb == "list" || verb == "watch" || f.user {
		return false, nil, nil
	}
	if f.dead {
		return true, nil, apierrors.NewInternalError(errors.New("the term has ended"))
	}
	if f.writes++; f.writes != f.at {
		return false, nil, nil
	}
	if f.written {
		f.carryOut(a)
	}
	if f.crash {
		f.dead = true
		f.stop()
	}
	return true, nil, apierrors.NewTimeoutError("the answer is lost", 0)
}

// carryOut does what the world does without a fault.
func (f *faulty) carryOut(a clienttesting.Action) {
	for _, reactor := range f.Client.ReactionChain[1:] {
		if !reactor.Handles(a) {
			continue
		}
		if handled, _, _ := reactor.React(a); handled {
			return
		}
	}
}

// watch delays the events of a watch.
func (f *faulty) watch(a clienttesting.Action) (bool, watch.Interface, error) {
	inner, err := f.Watch(a)
	if err != nil {
		return true, nil, err
	}
	late := &lateWatch{Interface: inner, out: make(chan watch.Event), stopped: make(chan struct{})}
	go late.run()
	return true, late, nil
}

// lateWatch hands each event on after the lag.
type lateWatch struct {
	watch.Interface
	out     chan watch.Event
	once    sync.Once
	stopped chan struct{}
}

func (w *lateWatch) run() {
	defer close(w.out)
	for e := range w.Interface.ResultChan() {
		select {
		case <-w.stopped:
			return
		case <-time.After(lag):
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
		w.Interface.Stop()
	})
}

// lives takes a pod with two claims of templates and a shared one through its life; the agent, the scheduler and the user
// meet no faults. It returns how many claims there were at the most and what is left.
func (f *faulty) lives() (most int, left []string) {
	f.by(func() error {
		reconciletest.Add(f.World, newTemplate())
		reconciletest.Add(f.World, newClaim("shared", allocated, protected))
		pod := newPod(templated("gpu"), templated("nic"), named("disk", "shared"))
		pod.Spec.NodeName = "n"
		reconciletest.Add(f.World, pod)
		return nil
	})
	f.turn()
	if n := len(f.Pods("ns")[0].Status.ResourceClaimStatuses); n != 2 {
		f.t.Errorf("%d claims are named", n)
	}
	most = len(f.names())
	f.by(func() error { return f.allocateAll() })
	f.turn()
	for _, name := range f.names() {
		if n := len(f.claim(name).Status.ReservedFor); n != 1 {
			f.t.Errorf("%s has %d users", name, n)
		}
	}
	f.by(func() error {
		pod := f.Pods("ns")[0]
		finished(&pod)
		_, err := f.Client.CoreV1().Pods("ns").UpdateStatus(f.t.Context(), &pod, metav1.UpdateOptions{})
		return err
	})
	f.turn()
	if shared := f.claim("shared"); len(shared.Status.ReservedFor) > 0 || shared.Status.Allocation != nil {
		f.t.Errorf("not released: %v", shared.Status)
	}
	return most, f.names()
}

// allocateAll is what the scheduler does.
func (f *faulty) allocateAll() error {
	for _, name := range f.names() {
		claim := f.claim(name)
		protected(claim)
		claims := f.Client.ResourceV1().ResourceClaims("ns")
		next, err := claims.Update(f.t.Context(), claim, metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		allocated(next)
		if _, err := claims.UpdateStatus(f.t.Context(), next, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (f *faulty) names() (names []string) {
	list, err := f.Client.ResourceV1().ResourceClaims("ns").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, claim := range list.Items {
		names = append(names, claim.Name)
	}
	return names
}

// TestFaultsAtEachWrite: whatever write fails, and however, and whether caches lag or not, each entry gets one claim, all are
// reserved once, and in the end the devices are free.
func TestFaultsAtEachWrite(t *testing.T) {
	for _, late := range []bool{false, true} {
		writes := 0
		run := func(at int, fault fault) {
			synctest.Test(t, func(t *testing.T) {
				f := newFaulty(t, at, fault, late)
				most, left := f.lives()
				if diff := cmp.Diff([]string{"shared"}, left); diff != "" || most != 3 {
					t.Errorf("%d claims, left: %s", most, diff)
				}
				f.end()
				writes = max(writes, f.writes)
			})
			if t.Failed() {
				t.Fatalf("write %d: %s; late: %v", at, fault.name, late)
			}
		}
		run(0, fault{})
		total := writes
		t.Logf("%d writes, late: %v", total, late)
		for at := 1; at <= total; at++ {
			for _, fault := range faults {
				run(at, fault)
			}
		}
	}
}
