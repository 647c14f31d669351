package volumebinder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// A fault is what happens at one write of the controller.
type fault string

const (
	refused     fault = "refused"              // nothing is written
	lostAnswer  fault = "written, answer lost" // it is written, and the controller gets an error
	crashBefore fault = "crash before it"      // the term ends, and another begins
	crashAfter  fault = "crash after it"       // the same, but it is written
	meddled     fault = "another writes first" // the version that was decided on is no longer the newest
)

// faulty is a world in which one write meets a fault.
type faulty struct {
	world
	at     int // which write
	fault  fault
	writes int                // so far
	stop   context.CancelFunc // of the term
	dead   bool               // the term has ended: the store refuses what it still sends
}

// react decides about one call of the client. The clientset holds its lock meanwhile.
func (f *faulty) react(a clienttesting.Action) (handled bool, ret runtime.Object, err error) {
	if a.GetVerb() != "update" {
		return false, nil, nil
	}
	if f.dead {
		return true, nil, apierrors.NewInternalError(errors.New("refused"))
	}
	if f.writes++; f.writes != f.at {
		return f.apply(a)
	}
	switch f.fault {
	case lostAnswer, crashAfter:
		_, _, _ = f.apply(a) // the answer is lost
	case meddled:
		f.meddle(a)
		return f.apply(a)
	case refused, crashBefore:
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
	return handled, ret, err
}

// meddle labels what is about to be written.
func (f *faulty) meddle(a clienttesting.Action) {
	name := a.(clienttesting.UpdateAction).GetObject().(metav1.Object).GetName()
	found, err := f.Client.Tracker().Get(a.GetResource(), a.GetNamespace(), name)
	if err != nil {
		f.t.Error(err)
		return
	}
	next := found.DeepCopyObject()
	next.(metav1.Object).SetLabels(map[string]string{"disk": "ssd"})
	_, _, _ = f.apply(clienttesting.NewUpdateAction(a.GetResource(), a.GetNamespace(), next))
}

// begin starts a term.
func (f *faulty) begin() (end func()) {
	ctx, cancel := context.WithCancel(f.Context())
	done := make(chan error, 1)
	f.stop, f.dead = cancel, false
	go func() { done <- New().Start(ctx, f.Env()) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			f.t.Error(err)
		}
	}
}

// play binds two claims, gives one volume back, and tells how the world ends.
func (f *faulty) play() []string {
	f.Warm(New())
	end := f.begin()
	f.Start()
	calm := func() {
		time.Sleep(10 * time.Minute)
		f.Settle()
		if f.dead {
			end()
			end = f.begin()
			time.Sleep(10 * time.Minute)
			f.Settle()
		}
	}
	for _, v := range []*corev1.PersistentVolume{fresh("small", "5Gi"), fresh("large", "9Gi"), fresh("third", "20Gi", referring("b", ""))} {
		reconciletest.Add(f.World, v)
	}
	calm()
	reconciletest.Add(f.World, newClaim("a"))
	reconciletest.Add(f.World, newClaim("b"))
	calm()
	reconciletest.Add(f.World, newClaim("c", ofVolume("large")))
	calm()
	if err := f.Client.CoreV1().PersistentVolumeClaims("ns").Delete(f.t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		f.t.Error(err)
	}
	calm()
	end()
	var states []string
	for _, name := range []string{"b", "c"} {
		c := f.claim(name)
		states = append(states, fmt.Sprint("claim ", name, " ", f.state(name), " ", c.Status.AccessModes, len(c.Status.Capacity), c.Annotations))
	}
	for _, name := range []string{"small", "large", "third"} {
		v := f.volume(name)
		states = append(states, fmt.Sprint("volume ", name, " ", v.Status.Phase, " of ", v.Spec.ClaimRef.Name, " ", v.Spec.ClaimRef.UID, " ", v.Annotations))
	}
	return states
}

// TestEveryFaultEndsTheSame lets each single write fail in each way: the end is that of a run without faults.
func TestEveryFaultEndsTheSame(t *testing.T) {
	run := func(at int, kind fault) (states, changes []string, writes int) {
		synctest.Test(t, func(t *testing.T) {
			f := &faulty{world: world{reconciletest.New(t), t}, at: at, fault: kind}
			f.Client.PrependReactor("*", "*", f.react)
			states = f.play()
			writes = f.writes
			changes = slices.DeleteFunc(f.Changes(), func(change string) bool { return !strings.HasPrefix(change, "update ") })
		})
		return states, changes, writes
	}
	want, changes, writes := run(0, "")
	if len(changes) != 3+3*4+1 { // three phases, three bindings, one release; two loops may try to write the same phase
		t.Fatalf("%q without a fault: %q", changes, want)
	}
	for at := 1; at <= writes; at++ {
		for _, kind := range []fault{refused, lostAnswer, crashBefore, crashAfter, meddled} {
			if got, _, _ := run(at, kind); !cmp.Equal(want, got) {
				t.Errorf("write %d %s: %s", at, kind, cmp.Diff(want, got))
			}
		}
	}
}
