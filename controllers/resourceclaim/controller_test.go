package resourceclaim

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// world is a world with the controller.
type world struct {
	*reconciletest.World
	t *testing.T
}

func (w world) claim(name string) *resourcev1.ResourceClaim {
	w.t.Helper()
	claim, err := w.Client.ResourceV1().ResourceClaims("ns").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return claim
}

func (w world) changePod(change func(*corev1.Pod)) {
	w.t.Helper()
	pod, err := w.Client.CoreV1().Pods("ns").Get(w.t.Context(), "p", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	change(pod)
	if _, err := w.Client.CoreV1().Pods("ns").UpdateStatus(w.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.Settle()
}

// expect compares what has changed since the last look.
func (w world) expect(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.Changes()); diff != "" {
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

// inWorld runs a test in a bubble of its own.
func inWorld(t *testing.T, test func(w world)) {
	synctest.Test(t, func(t *testing.T) {
		w := world{reconciletest.New(t), t}
		test(w)
	})
}

func finished(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }

func TestAClaimIsMadeAndNamed(t *testing.T) {
	inWorld(t, func(w world) {
		var manager atomic.Value
		w.Client.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			manager.Store(a.(clienttesting.PatchActionImpl).PatchOptions.FieldManager)
			return false, nil, nil
		})
		w.Run(New())
		reconciletest.Add(w.World, newTemplate())
		w.Settle()
		pod := newPod(templated("gpu"), named("nic", "mine"), templated("disk"))
		pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "disk"}} // none is needed
		reconciletest.Add(w.World, pod)
		w.Settle()
		name := planClaim(pod, "gpu", newTemplate(), 0).Name
		w.expect("create resourceclaims ns/"+name, "patch pods/status ns/p")
		if manager.Load() != "ResourceClaimController" {
			t.Errorf("field manager %v", manager.Load())
		}
		want := []corev1.PodResourceClaimStatus{{Name: "disk"}, {Name: "gpu", ResourceClaimName: &name}}
		got := w.Pods("ns")[0].Status.ResourceClaimStatuses
		slices.SortFunc(got, func(a, b corev1.PodResourceClaimStatus) int { return strings.Compare(a.Name, b.Name) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		w.rest()
		if err := w.Client.ResourceV1().ResourceClaims("ns").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		w.expect("delete resourceclaims ns/"+name, "create resourceclaims ns/"+name)
		w.rest()
	})
}

// Numbers are upstream's: claims by what they are, creations by how they ended.
func TestClaimsAreCounted(t *testing.T) {
	inWorld(t, func(w world) {
		w.Numbers = &numbers.Ledger{}
		refused := errors.New("refused")
		w.Client.PrependReactor("create", "resourceclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
			err := refused
			refused = nil
			return err != nil, nil, err
		})
		w.Run(New())
		template := newTemplate()
		template.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{AdminAccess: new(true)}}}
		reconciletest.Add(w.World, template)
		extended := newClaim("extended", allocated)
		extended.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
		reconciletest.Add(w.World, extended)
		reconciletest.Add(w.World, newPod(templated("gpu")))
		w.Settle()
		time.Sleep(time.Second) // until it is tried again
		w.Settle()
		want := numbers.DeviceCounts{
			Creations: map[numbers.ClaimCreation]uint64{
				{Status: "failure", Admin: true, OwnerKind: "Pod"}: 1, {Status: "success", Admin: true, OwnerKind: "Pod"}: 1},
			Claims: map[numbers.ClaimState]int{{Source: "extended_resource", Allocated: true}: 1, {Admin: true, Source: "resource_claim_template"}: 1},
		}
		if diff := cmp.Diff(want, w.Numbers.Devices.Counts()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestATemplateMayComeLate(t *testing.T) {
	inWorld(t, func(w world) {
		w.Run(New())
		pod := reconciletest.Add(w.World, newPod(templated("gpu")))
		w.Settle()
		want := []string{`Warning FailedResourceClaimCreation PodResourceClaim gpu: resource claim template "t": resourceclaimtemplates.resource.k8s.io "t" not found`}
		if diff := cmp.Diff(want, w.Events.List()); diff != "" {
			t.Error(diff)
		}
		w.rest()
		reconciletest.Add(w.World, newTemplate())
		w.Settle()
		w.expect("create resourceclaims ns/"+planClaim(pod, "gpu", newTemplate(), 0).Name, "patch pods/status ns/p")
	})
}

func TestWhoseClaimItIs(t *testing.T) {
	pod := newPod(templated("gpu"))
	first, second := planClaim(pod, "gpu", newTemplate(), 0).Name, planClaim(pod, "gpu", newTemplate(), 1).Name
	for name, c := range map[string]struct {
		found []*resourcev1.ResourceClaim
		knows string // in the pod's status
		want  []string
		named string
	}{
		"made, but not named":         {[]*resourcev1.ResourceClaim{newClaim("p-gpu-x", ownedBy("uid-p"))}, "", []string{"patch pods/status ns/p"}, "p-gpu-x"},
		"named, and another's":        {[]*resourcev1.ResourceClaim{newClaim("x")}, "x", []string{"create resourceclaims ns/" + first, "patch pods/status ns/p"}, first},
		"named, and a former pod's":   {[]*resourcev1.ResourceClaim{newClaim("x", ownedBy("uid-old"))}, "x", []string{"delete resourceclaims ns/x", "create resourceclaims ns/" + first, "patch pods/status ns/p"}, first},
		"named, and gone":             {nil, "x", []string{"create resourceclaims ns/" + first, "patch pods/status ns/p"}, first},
		"another has the first name":  {[]*resourcev1.ResourceClaim{newClaim(first)}, "", []string{"create resourceclaims ns/" + second, "patch pods/status ns/p"}, second},
		"of another entry of the pod": {[]*resourcev1.ResourceClaim{newClaim("x", ownedBy("uid-p"), func(c *resourcev1.ResourceClaim) { c.Annotations = nil })}, "", []string{"create resourceclaims ns/" + first, "patch pods/status ns/p"}, first},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w world) {
				reconciletest.Add(w.World, newTemplate())
				for _, claim := range c.found {
					reconciletest.Add(w.World, claim)
				}
				p := pod.DeepCopy()
				if c.knows != "" {
					p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &c.knows}}
				}
				reconciletest.Add(w.World, p)
				w.Run(New())
				w.Settle()
				got, want := w.Changes(), slices.Sorted(slices.Values(c.want))
				slices.Sort(got)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				if statuses := w.Pods("ns")[0].Status.ResourceClaimStatuses; len(statuses) != 1 || *statuses[0].ResourceClaimName != c.named {
					t.Errorf("%v, want %s", statuses, c.named)
				}
				w.rest()
			})
		})
	}
}

func TestReservations(t *testing.T) {
	bound := func(p *corev1.Pod) { p.Spec.NodeName = "n" }
	gone := reservedFor("pods", "gone", "uid-gone")
	for name, c := range map[string]struct {
		claim *resourcev1.ResourceClaim
		pod   func(*corev1.Pod)
		want  []string
		users int
	}{
		"pod on a node reserves":                {newClaim("c", allocated, protected), bound, []string{"update resourceclaims/status ns/c"}, 1},
		"pod without a node does not":           {newClaim("c", allocated, protected), nil, nil, 0},
		"nor is a claim without devices":        {newClaim("c"), bound, nil, 0},
		"reserved already":                      {newClaim("c", allocated, protected, reservedFor("pods", "p", "uid-p")), bound, nil, 1},
		"a pod that is gone":                    {newClaim("c", allocated, protected, gone), nil, []string{"update resourceclaims/status ns/c", "update resourceclaims ns/c"}, 0},
		"a pod that was replaced":               {newClaim("c", allocated, protected, reservedFor("pods", "p", "uid-old")), nil, []string{"update resourceclaims/status ns/c", "update resourceclaims ns/c"}, 0},
		"a pod that has finished":               {newClaim("c", allocated, protected, reservedFor("pods", "p", "uid-p")), finished, []string{"update resourceclaims/status ns/c", "update resourceclaims ns/c"}, 0},
		"one of two":                            {newClaim("c", allocated, protected, gone, reservedFor("pods", "p", "uid-p")), nil, []string{"update resourceclaims/status ns/c"}, 1},
		"what is no pod stays":                  {newClaim("c", allocated, protected, gone, reservedFor("jobs", "j", "uid-j")), nil, []string{"update resourceclaims/status ns/c"}, 1},
		"who allocated it otherwise keeps it":   {newClaim("c", allocated, gone), nil, []string{"update resourceclaims/status ns/c"}, 0},
		"a claim that nobody has used keeps it": {newClaim("c", allocated, protected), nil, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w world) {
				reconciletest.Add(w.World, c.claim)
				pod := newPod(named("gpu", "c"))
				if c.pod != nil {
					c.pod(pod)
				}
				reconciletest.Add(w.World, pod)
				w.Run(New())
				w.Settle()
				w.expect(c.want...)
				got := w.claim("c")
				protects := slices.Contains(got.Finalizers, resourcev1.Finalizer)
				ends := slices.Contains(c.want, "update resourceclaims ns/c")
				if len(got.Status.ReservedFor) != c.users || ends && (protects || got.Status.Allocation != nil) ||
					!ends && (got.Status.Allocation == nil) != (c.claim.Status.Allocation == nil) {
					t.Errorf("%v %v, want %d users", got.Finalizers, got.Status, c.users)
				}
				w.rest()
			})
		})
	}
}

func TestTheEndOfAPod(t *testing.T) {
	for name, end := range map[string]func(w world){
		"it finishes": func(w world) { w.changePod(finished) },
		"it is deleted before it is placed": func(w world) {
			if err := w.Client.CoreV1().Pods("ns").Delete(w.t.Context(), "p", metav1.DeleteOptions{}); err != nil {
				w.t.Fatal(err)
			}
			w.Settle()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w world) {
				pod := newPod(templated("gpu"))
				pod.Finalizers = []string{"test/keep"}
				pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: new("c")}}
				pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "ext"}
				reconciletest.Add(w.World, pod)
				for _, claim := range []string{"c", "ext"} {
					reconciletest.Add(w.World, newClaim(claim, ownedBy("uid-p"), allocated, protected, reservedFor("pods", "p", "uid-p")))
				}
				w.Run(New())
				w.rest()
				end(w)
				list, err := w.Client.ResourceV1().ResourceClaims("ns").List(t.Context(), metav1.ListOptions{})
				if err != nil || len(list.Items) > 0 {
					t.Errorf("%v %v", list, err)
				}
				w.Changes()
				w.rest()
			})
		})
	}
}

func TestADeletedClaimIsFreed(t *testing.T) {
	inWorld(t, func(w world) {
		w.Run(New())
		for _, edits := range [][]edit{{allocated, protected}, {protected}} {
			reconciletest.Add(w.World, newClaim("c", edits...))
			w.Settle()
			if err := w.Client.ResourceV1().ResourceClaims("ns").Delete(t.Context(), "c", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			w.Settle()
			if _, err := w.Client.ResourceV1().ResourceClaims("ns").Get(t.Context(), "c", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("it is still there: %v", err)
			}
		}
		w.Changes()
		w.rest()
	})
}

// TestAStalePodDoesNotFreeDevices: the cache of claims may be ahead of that of pods.
func TestAStalePodDoesNotFreeDevices(t *testing.T) {
	former := newPod()
	former.UID = "uid-old"
	for name, cached := range map[string]*corev1.Pod{"the pod is not there yet": nil, "its predecessor is": former} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w world) {
				var down atomic.Bool
				down.Store(true)
				w.Client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
					if down.Load() {
						return true, nil, apierrors.NewTimeoutError("try again", 0)
					}
					return true, newPod(), nil
				})
				if cached != nil {
					reconciletest.Add(w.World, cached)
				}
				reconciletest.Add(w.World, newClaim("reserved", allocated, protected, reservedFor("pods", "p", "uid-p")))
				reconciletest.Add(w.World, newClaim("made", ownedBy("uid-p")))
				w.Run(New())
				time.Sleep(time.Minute)
				down.Store(false)
				time.Sleep(time.Hour)
				w.rest()
			})
		})
	}
}
