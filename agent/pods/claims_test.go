package pods

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// claims prepares those of each pod.
type claims struct {
	mu    sync.Mutex
	has   map[types.UID]bool
	calls []string
	err   error
}

func (c *claims) called(what string, pod types.UID, has bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, what+" "+string(pod))
	if has {
		c.has[pod] = true // also if it fails: a driver may have begun
	} else if c.err == nil {
		delete(c.has, pod)
	}
	return c.err
}

func (c *claims) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

func (c *claims) Prepare(_ context.Context, pod *corev1.Pod) error {
	return c.called("prepare", pod.UID, true)
}

func (c *claims) Unprepare(_ context.Context, pod types.UID) error {
	return c.called("unprepare", pod, false)
}

func (c *claims) Given(pod *corev1.Pod, _ *corev1.Container) (podconfig.Given, error) {
	return podconfig.Given{CDI: []string{"example.com/dev=" + pod.Name}}, nil
}

func (c *claims) Status(pod *corev1.Pod, _ *corev1.Container) []corev1.ResourceStatus {
	if !c.Has(pod.UID) {
		return nil
	}
	return []corev1.ResourceStatus{{Name: "claim:my"}}
}

func (c *claims) Has(pod types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.has[pod]
}

func (c *claims) Pods() []types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []types.UID
	for pod := range c.has {
		out = append(out, pod)
	}
	return out
}

// did are the calls since the last time, each once in a row.
func (c *claims) did() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := slices.Compact(c.calls)
	c.calls = nil
	return calls
}

func withClaims(t *testing.T, programs map[string]podstest.Program, body func(w *world, c *claims)) {
	c := &claims{has: map[types.UID]bool{}}
	inBubble(t, programs, func(w *world) {
		w.stopAgent()
		w.claims = c
		w.startAgent()
		body(w, c)
	})
}

// pass lets time go by, and everything happen that happens then.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	w.settle()
}

// TestClaimsArePreparedBeforeAndUnpreparedAfterThePod, and only then does the API hear that it has ended.
func TestClaimsArePreparedBeforeAndUnpreparedAfterThePod(t *testing.T) {
	withClaims(t, map[string]podstest.Program{"job": {ExitAfter: time.Minute}}, func(w *world, c *claims) {
		c.fail(errors.New("the driver is not there"))
		pod := newPod("p", "job")
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		w.create(pod)
		if !w.events.has("FailedPrepareDynamicResources Failed to prepare dynamic resources: the driver is not there") || len(w.runtime.Calls()) != 0 {
			t.Errorf("events:\n%s\ncalls: %v", w.events, w.runtime.Calls())
		}
		c.fail(nil)
		w.pass(startRetryMax)
		if got := w.get("p").Status.Phase; got != corev1.PodRunning || w.runtime.Config("c0").CDIDevices[0].Name != "example.com/dev=p" {
			t.Errorf("%s %v", got, w.runtime.Config("c0"))
		}
		if did := c.did(); !slices.Equal(did, []string{"prepare uid-p"}) {
			t.Error(did)
		}
		w.stopAgent()
		w.startAgent()
		c.fail(errors.New("busy"))
		w.pass(time.Minute)
		got := w.get("p").Status
		if got.Phase != corev1.PodRunning || got.ContainerStatuses[0].State.Terminated == nil {
			t.Errorf("with claims that are prepared: %s %v", got.Phase, got.ContainerStatuses[0].State)
		}
		c.fail(nil)
		w.pass(2 * lookRetry)
		got = w.get("p").Status
		if of := got.ContainerStatuses[0].AllocatedResourcesStatus; got.Phase != corev1.PodSucceeded || len(of) != 1 { // the last word stays
			t.Errorf("%s %v", got.Phase, of)
		}
		if did := c.did(); !slices.Equal(did, []string{"unprepare uid-p"}) {
			t.Error(did)
		}
	})
}

// TestAPodIsDeletedAfterItsClaimsAreUnprepared: the claim may be another pod's once the object is gone.
func TestAPodIsDeletedAfterItsClaimsAreUnprepared(t *testing.T) {
	withClaims(t, map[string]podstest.Program{"web": {}}, func(w *world, c *claims) {
		w.create(newPod("p", "web"))
		c.fail(errors.New("busy"))
		w.delete("p", 2)
		w.pass(10 * time.Second)
		if !w.exists("p") || !w.events.has("FailedUnprepareDynamicResources Failed to unprepare dynamic resources: busy") {
			t.Errorf("it is gone, or nothing says what holds it:\n%s", w.events)
		}
		c.fail(nil)
		w.pass(2 * lookRetry)
		if w.exists("p") || c.Has("uid-p") {
			t.Error("it is still there")
		}
	})
}

// TestClaimsOfAPodThatIsGone are unprepared by the next agent.
func TestClaimsOfAPodThatIsGone(t *testing.T) {
	withClaims(t, nil, func(w *world, c *claims) {
		w.stopAgent()
		c.has["gone"] = true
		c.fail(errors.New("the driver is not there yet"))
		w.startAgent()
		w.settle()
		c.fail(nil)
		w.pass(startRetryMax)
		if c.Has("gone") {
			t.Error("still prepared")
		}
	})
}

// TestAPodWithClaimsOnANodeWithoutDrivers waits, and says why.
func TestAPodWithClaimsOnANodeWithoutDrivers(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		pod := newPod("p", "web")
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: to("c")}}
		w.create(pod)
		if !w.events.has("FailedPrepareDynamicResources Failed to prepare dynamic resources: this node uses no DRA drivers") {
			t.Errorf("events:\n%s", w.events)
		}
	})
}
