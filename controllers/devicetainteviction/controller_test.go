package devicetainteviction

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// world is a world with the controller and pods a and b, which share device d; its clock begins at begin.
type world struct {
	*reconciletest.World
	t *testing.T
}

func inWorld(t *testing.T, tolerations []resourcev1.DeviceToleration, test func(w world)) {
	synctest.Test(t, func(t *testing.T) {
		w := world{reconciletest.New(t), t}
		w.Numbers = &numbers.Ledger{}
		reconciletest.Add(w.World, newSlice("s", 1))
		reconciletest.Add(w.World, newClaim(tolerations, "a", "b"))
		for _, name := range []string{"a", "b"} {
			reconciletest.Add(w.World, newPod(name))
		}
		w.Run(New())
		w.rest()
		test(w)
	})
}

// taint gives device d the taints, of now.
func (w world) taint(taints ...resourcev1.DeviceTaint) {
	for i := range taints {
		taints[i].TimeAdded = &metav1.Time{Time: time.Now()}
	}
	reconciletest.Edit(w.World, newSlice("s", 1), func(s *resourcev1.ResourceSlice) { s.Spec.Devices[0].Taints = taints })
	w.Settle()
}

// expect compares what has changed since the last look, in any order.
func (w world) expect(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(w.Changes()))); diff != "" {
		w.t.Error(diff)
	}
}

// rest checks that nothing is written or told while nothing changes.
func (w world) rest() {
	w.t.Helper()
	time.Sleep(time.Hour)
	if writes, events := w.Writes(), w.Events.List(); len(writes)+len(events) > 0 {
		w.t.Errorf("nothing has changed, but there is %v %v", writes, events)
	}
}

func (w world) events(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.Events.List()); diff != "" {
		w.t.Error(diff)
	}
}

func (w world) condition() string {
	w.t.Helper()
	rule, err := w.Client.ResourceV1().DeviceTaintRules().Get(w.t.Context(), "r", metav1.GetOptions{})
	if err != nil || len(rule.Status.Conditions) != 1 {
		w.t.Fatalf("%v %v", rule, err)
	}
	c := rule.Status.Conditions[0]
	return string(c.Status) + " " + c.Reason + " " + c.Message
}

const (
	marking    = "Normal DeviceTaintManagerEviction Marking for deletion"
	cancelling = "Normal DeviceTaintManagerEviction Cancelling deletion"
)

func TestATaintEvictsAtOnce(t *testing.T) {
	inWorld(t, nil, func(w world) {
		w.taint(noExecute("k", 0))
		w.Changes()
		w.events(marking, marking)
		for _, p := range w.Pods("ns") {
			c := p.Status.Conditions
			if p.DeletionTimestamp == nil || len(c) != 1 || c[0].Type != corev1.DisruptionTarget || c[0].Reason != "DeletionByDeviceTaintManager" ||
				c[0].Message != "Device Taint manager: deleting due to NoExecute taint" || !c[0].LastTransitionTime.Time.Before(time.Now()) {
				t.Errorf("%s %v %v", p.Name, p.DeletionTimestamp, c)
			}
		}
		w.rest()
	})
}

func TestATolerationEnds(t *testing.T) {
	inWorld(t, []resourcev1.DeviceToleration{tolerates("k", new(int64(60)))}, func(w world) {
		w.taint(noExecute("k", 0))
		time.Sleep(59 * time.Second)
		w.expect()
		time.Sleep(time.Second)
		w.Settle()
		w.expect("delete pods ns/a", "delete pods ns/b", "update pods/status ns/a", "update pods/status ns/b")
		const counted = "device_taint_eviction_controller_pod_deletions_total"
		want := "# HELP " + counted + " Pods deleted because of the taint of a device.\n# TYPE " + counted + " counter\n" + counted + " 2\n"
		if err := testutil.CollectAndCompare(w.Numbers.Series(), strings.NewReader(want), counted); err != nil {
			t.Error(err)
		}
	})
}

func TestATaintThatGoesEvictsNobody(t *testing.T) {
	inWorld(t, []resourcev1.DeviceToleration{tolerates("k", new(int64(60)))}, func(w world) {
		w.taint(noExecute("k", 0))
		time.Sleep(50 * time.Second)
		w.events()
		w.taint()
		w.events(cancelling, cancelling)
		w.rest()
	})
}

// TestExtendedResourcesAreDevices: the claim that was made for a pod's extended resources becomes known with the pod's status, which
// names it, and no longer counts when the status names none.
func TestExtendedResourcesAreDevices(t *testing.T) {
	inWorld(t, []resourcev1.DeviceToleration{tolerates("k", new(int64(60)))}, func(w world) {
		reconciletest.Edit(w.World, newClaim(nil), func(c *resourcev1.ResourceClaim) {
			c.Status.ReservedFor = newClaim(nil, "x").Status.ReservedFor
			c.OwnerReferences = []metav1.OwnerReference{{UID: "uid-x", Controller: new(true)}}
		})
		pod := newPod("x")
		pod.Spec.ResourceClaims = nil
		reconciletest.Add(w.World, pod)
		w.Settle()
		w.taint(noExecute("k", 0))
		name := func(claim *corev1.PodExtendedResourceClaimStatus) {
			reconciletest.Edit(w.World, pod, func(p *corev1.Pod) { p.Status.ExtendedResourceClaimStatus = claim })
			w.Settle()
		}
		time.Sleep(50 * time.Second)
		w.events()
		name(&corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "c"})
		w.events()
		name(nil)
		w.events(cancelling)
		name(&corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "c"})
		time.Sleep(10 * time.Second)
		w.Settle()
		w.expect("delete pods ns/x", "update pods/status ns/x")
	})
}

// TestAnOlderPoolTaintsNobody: a driver that publishes its devices anew ends the taints of what it published before.
func TestAnOlderPoolTaintsNobody(t *testing.T) {
	inWorld(t, []resourcev1.DeviceToleration{tolerates("k", new(int64(60)))}, func(w world) {
		w.taint(noExecute("k", 0))
		reconciletest.Add(w.World, newSlice("next", 2))
		w.Settle()
		w.events(cancelling, cancelling)
		w.Delete(newSlice("next", 2))
		time.Sleep(time.Minute)
		w.events(marking, marking)
	})
}

func TestARuleTellsWhatItDoes(t *testing.T) {
	inWorld(t, []resourcev1.DeviceToleration{tolerates("r", new(int64(60)))}, func(w world) {
		var manager atomic.Value
		w.Client.PrependReactor("patch", "devicetaintrules", func(a clienttesting.Action) (bool, runtime.Object, error) {
			manager.Store(a.(clienttesting.PatchActionImpl).PatchOptions.FieldManager)
			return false, nil, nil
		})
		reconciletest.Add(w.World, newRule("r", &resourcev1.DeviceTaintSelector{Device: new("d")}, resourcev1.DeviceTaintEffectNone, 0))
		w.Settle()
		w.expect("patch devicetaintrules/status /r")
		want := "False NoEffect 1 published device selected. 1 allocated device selected. 2 pods would be evicted in 1 namespace if the effect was NoExecute. " +
			"This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."
		if got := w.condition(); got != want || manager.Load() != "device-taint-eviction-controller" {
			t.Errorf("%s by %v", got, manager.Load())
		}
		w.rest()
		reconciletest.Edit(w.World, newRule("r", nil, "", 0), func(r *resourcev1.DeviceTaintRule) {
			r.Spec.Taint.Effect, r.Spec.Taint.TimeAdded = resourcev1.DeviceTaintEffectNoExecute, &metav1.Time{Time: time.Now()}
		})
		w.Settle()
		w.expect("patch devicetaintrules/status /r")
		if got := w.condition(); got != "True PodsPendingEviction 2 pods need to be evicted in 1 namespace." {
			t.Error(got)
		}
		time.Sleep(2 * time.Minute)
		w.Changes()
		w.events(marking, marking)
		if got := w.condition(); got != "False Completed 2 pods evicted since starting the controller." {
			t.Error(got)
		}
		w.rest()
	})
}

// TestAStatusIsWrittenRarely: pods that come and go for a rule change its status once in ten seconds.
func TestAStatusIsWrittenRarely(t *testing.T) {
	inWorld(t, []resourcev1.DeviceToleration{tolerates("r", new(int64(3600)))}, func(w world) {
		rule := newRule("r", &resourcev1.DeviceTaintSelector{}, resourcev1.DeviceTaintEffectNoExecute, 0)
		rule.Spec.Taint.TimeAdded = &metav1.Time{Time: time.Now()}
		reconciletest.Add(w.World, rule)
		for i := range 30 {
			time.Sleep(time.Second)
			reconciletest.Edit(w.World, newClaim(nil), func(c *resourcev1.ResourceClaim) { c.Status.ReservedFor = c.Status.ReservedFor[:0] })
			if i%2 == 0 {
				reconciletest.Edit(w.World, newClaim(nil), func(c *resourcev1.ResourceClaim) { c.Status.ReservedFor = newClaim(nil, "a").Status.ReservedFor })
			}
		}
		if n := len(w.Writes()); n == 0 || n > 4 {
			t.Errorf("%d writes in 30 seconds", n)
		}
		time.Sleep(time.Minute)
		w.Writes()
		if got := w.condition(); got != "False NotStarted " {
			t.Error(got)
		}
	})
}

func TestOnlyThePodThatIsMeantIsDeleted(t *testing.T) {
	dying := newPod("a")
	dying.DeletionTimestamp = &metav1.Time{Time: begin}
	another := newPod("a")
	another.UID = "another"
	for name, there := range map[string]*corev1.Pod{"gone": nil, "replaced": another, "ending": dying} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, nil, func(w world) {
				w.Client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
					if there == nil {
						return true, nil, apierrors.NewNotFound(corev1.Resource("pods"), "a")
					}
					return true, there, nil
				})
				w.taint(noExecute("k", 0))
				w.rest()
			})
		})
	}
}
