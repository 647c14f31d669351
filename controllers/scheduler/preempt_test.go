package scheduler

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/controllers/scheduler/budgets"
	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/podkey"
)

func prioritized(pod *corev1.Pod, priority int32) *corev1.Pod {
	pod.Spec.Priority = &priority
	return pod
}

func started(pod *corev1.Pod, ago time.Duration) *corev1.Pod {
	pod.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(-ago))
	return pod
}

// preemptCase is a world in which a pod fits nowhere, who has to go for it, and what is said.
type preemptCase struct {
	name    string
	nodes   []*corev1.Node
	placed  []*corev1.Pod
	budgets []budgets.Budget
	pod     *corev1.Pod
	victims []string
	message string
}

func preemptCases() []preemptCase {
	two := []*corev1.Node{testNode("node-1", "z", "2", "8Gi"), testNode("node-2", "z", "2", "8Gi")}
	never := corev1.PreemptNever
	quiet := prioritized(testPod("in", "1", ""), 10)
	quiet.Spec.PreemptionPolicy = &never
	labelled := func(pod *corev1.Pod, app string) *corev1.Pod {
		pod.Labels["app"] = app
		return pod
	}
	guard := []budgets.Budget{{Namespace: "default", Name: "guard", Selector: labels.SelectorFromSet(labels.Set{"app": "guarded"})}}
	return []preemptCase{
		{
			name: "nobody is less important", nodes: two, placed: []*corev1.Pod{bound(testPod("a", "2", ""), "node-1"), bound(testPod("b", "2", ""), "node-2")},
			pod: testPod("in", "1", ""), message: "0/2 nodes are available: 2 No preemption victims found for incoming pod.",
		},
		{
			name: "the node is too small", nodes: two, pod: prioritized(testPod("in", "3", ""), 10),
			message: "0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
		},
		{name: "never", nodes: two, placed: []*corev1.Pod{bound(testPod("a", "2", ""), "node-1"), bound(testPod("b", "2", ""), "node-2")}, pod: quiet, message: preemptNever},
		{
			name: "the less important victim", nodes: two, pod: prioritized(testPod("in", "1", ""), 10),
			placed:  []*corev1.Pod{bound(prioritized(testPod("a", "2", ""), 5), "node-1"), bound(prioritized(testPod("b", "2", ""), 4), "node-2")},
			victims: []string{"b"}, message: "1 pod(s) of lower priority on node-2 are being evicted.",
		},
		{
			name: "no more than needed", nodes: two[:1], pod: prioritized(testPod("in", "1", ""), 10),
			placed:  []*corev1.Pod{bound(started(testPod("old", "1", ""), time.Hour), "node-1"), bound(started(testPod("young", "1", ""), time.Minute), "node-1")},
			victims: []string{"young"}, message: "1 pod(s) of lower priority on node-1 are being evicted.",
		},
		{
			name: "fewer victims", nodes: two, pod: prioritized(testPod("in", "2", ""), 10),
			placed:  []*corev1.Pod{bound(testPod("a", "1", ""), "node-1"), bound(testPod("b", "1", ""), "node-1"), bound(testPod("c", "2", ""), "node-2")},
			victims: []string{"c"}, message: "1 pod(s) of lower priority on node-2 are being evicted.",
		},
		{
			name: "budgets weigh more than priority", nodes: two, pod: prioritized(testPod("in", "2", ""), 10), budgets: guard,
			placed:  []*corev1.Pod{bound(labelled(testPod("a", "2", ""), "guarded"), "node-1"), bound(prioritized(testPod("b", "2", ""), 5), "node-2")},
			victims: []string{"b"}, message: "1 pod(s) of lower priority on node-2 are being evicted.",
		},
	}
}

func TestPreempt(t *testing.T) {
	for _, tt := range preemptCases() {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(tt.nodes...)
			for _, p := range tt.placed {
				b.setPod(p)
			}
			pod := plugin.NewPod(tt.pod)
			_, err := b.engine.place(pod, podkey.Of(tt.pod), nil)
			var fit *FitError
			if !errors.As(err, &fit) {
				t.Fatalf("place: %v, want a FitError", err)
			}
			var victims []string
			if chosen := b.preempt(pod, fit, tt.budgets); chosen != nil {
				for _, v := range chosen.victims {
					victims = append(victims, v.Name)
				}
			}
			if diff := cmp.Diff(tt.victims, victims); diff != "" {
				t.Errorf("victims (-want +got)\n%s", diff)
			}
			if fit.Preemption != tt.message {
				t.Errorf("got  %s\nwant %s", fit.Preemption, tt.message)
			}
		})
	}
}

func TestPromisedRoomIsKept(t *testing.T) {
	b := newBench(testNode("node-1", "z", "2", "8Gi"))
	important := plugin.NewPod(prioritized(testPod("important", "2", ""), 10))
	b.nominate(important, "node-1")
	for range 2 {
		want := "0/1 nodes are available: 1 Insufficient cpu."
		if got := b.try(testPod("thief", "1", "")); got != want {
			t.Errorf("a less important pod: %q, want %q", got, want)
		}
	}
	if got := b.try(prioritized(testPod("boss", "1", ""), 20)); got != "node-1" {
		t.Errorf("a more important pod: %q, want node-1", got)
	}
}

func TestPreemptionInTheLoop(t *testing.T) {
	low := bound(testPod("low", "1", ""), "node-1")
	inWorld(t, []runtime.Object{testNode("node-1", "z", "1", "8Gi"), low}, func(w *world) {
		w.createPod(prioritized(testPod("high", "1", ""), 100))
		w.wantNode("high", "node-1")
		w.wantEvent("Preempted", "Preempted by pod uid-high on node node-1")
		synctest.Wait()
		if _, err := w.client.CoreV1().Pods("default").Get(t.Context(), "low", metav1.GetOptions{}); err == nil {
			t.Error("the victim is still there")
		}
	})
}

func TestPreemptionWaitsForTheVictim(t *testing.T) {
	low := bound(testPod("low", "1", ""), "node-1")
	inWorld(t, []runtime.Object{testNode("node-1", "z", "1", "8Gi"), low}, func(w *world) {
		w.leaveGracefully()
		w.createPod(prioritized(testPod("high", "1", ""), 100))
		w.wantNode("high", "")
		if got := w.pod("high").Status.NominatedNodeName; got != "node-1" {
			t.Errorf("nominated to %q, want node-1", got)
		}
		w.createPod(testPod("thief", "1", ""))
		time.Sleep(time.Minute)
		if err := w.client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "default", "low"); err != nil {
			t.Fatal(err)
		}
		w.wantNode("high", "node-1")
		w.wantNode("thief", "")
		if n := w.deletions.Load(); n != 1 {
			t.Errorf("%d deletions, want 1", n)
		}
	})
}

// TestALostPromiseIsNotShown: a more important pod takes over the room, so the status of the other no longer names the node.
func TestALostPromiseIsNotShown(t *testing.T) {
	inWorld(t, []runtime.Object{testNode("node-1", "z", "1", "8Gi"), bound(testPod("low", "1", ""), "node-1")}, func(w *world) {
		w.leaveGracefully()
		w.createPod(prioritized(testPod("mid", "1", ""), 50))
		synctest.Wait()
		if got := w.pod("mid").Status.NominatedNodeName; got != "node-1" {
			t.Fatalf("nominated to %q, want node-1", got)
		}
		w.createPod(prioritized(testPod("high", "1", ""), 100))
		synctest.Wait()
		if mid, high := w.pod("mid").Status.NominatedNodeName, w.pod("high").Status.NominatedNodeName; mid != "" || high != "node-1" {
			t.Errorf("mid is nominated to %q, high to %q, want none and node-1", mid, high)
		}
	})
}

func TestRefusedEvictionIsTriedAgain(t *testing.T) {
	inWorld(t, []runtime.Object{testNode("node-1", "z", "1", "8Gi"), bound(testPod("low", "1", ""), "node-1")}, func(w *world) {
		var refusals atomic.Int64
		w.client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			if refusals.Add(1) > 3 {
				return false, nil, nil
			}
			return true, nil, apierrors.NewInternalError(errors.New("no quorum"))
		})
		w.createPod(prioritized(testPod("high", "1", ""), 100))
		start := time.Now()
		for w.pod("high").Spec.NodeName == "" && time.Since(start) < time.Minute {
			time.Sleep(100 * time.Millisecond)
		}
		w.wantNode("high", "node-1")
		if took := time.Since(start); took < 3*backoffMin {
			t.Errorf("three refusals took %v, want at least %v", took, 3*backoffMin)
		}
	})
}

// TestPreemptionLooksAtEveryNode: more nodes than are compared, and evictions help on the last two only. On the others
// the pods are as important as the one that comes, or too small to make room.
func TestPreemptionLooksAtEveryNode(t *testing.T) {
	for name, tooSmall := range map[string]bool{"important pods elsewhere": false, "small pods elsewhere": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(nodesNamed(preemptNodes + 30)...)
			for i := range preemptNodes + 30 {
				node := fmt.Sprintf("node-%03d", i)
				low := prioritized(testPod(fmt.Sprint("low-", i), "31", ""), 1)
				high := prioritized(testPod(fmt.Sprint("high-", i), "31", ""), 100)
				small := prioritized(testPod(fmt.Sprint("small-", i), "1", ""), 1)
				switch {
				case i >= preemptNodes+28:
					b.setPod(bound(low, node))
				case tooSmall:
					b.setPod(bound(high, node))
					b.setPod(bound(small, node))
				default:
					b.setPod(bound(high, node))
				}
			}
			pod := plugin.NewPod(prioritized(testPod("in", "4", ""), 50))
			for range 3 { // from three different nodes on
				_, err := b.place(pod, podkey.Of(pod.Pod), nil)
				var fit *FitError
				if !errors.As(err, &fit) {
					t.Fatal(err)
				}
				if found := b.preempt(pod, fit, nil); found == nil {
					t.Errorf("nobody found: %s", fit.Preemption)
				}
			}
		})
	}
}

// TestNotStartedIsLeastImportant: of equals, one that waits for its node goes before one that runs, however old it is.
func TestNotStartedIsLeastImportant(t *testing.T) {
	waiting, running := started(testPod("a", "1", ""), 2*time.Hour), testPod("b", "1", "")
	running.Status.StartTime = new(metav1.NewTime(waiting.CreationTimestamp.Add(time.Hour)))
	if moreImportant(plugin.NewPod(running), plugin.NewPod(waiting)) >= 0 {
		t.Error("the pod that has not started is more important")
	}
}

// TestPromiseOfTheTermBefore: the scheduler begins anew while a victim goes. Who comes meanwhile does not take its room.
func TestPromiseOfTheTermBefore(t *testing.T) {
	low := bound(testPod("low", "1", ""), "node-1")
	low.DeletionTimestamp, low.Finalizers = &metav1.Time{Time: time.Now()}, []string{"example.com/held"}
	high := prioritized(testPod("high", "1", ""), 100)
	high.Status.NominatedNodeName = "node-1"
	inWorld(t, []runtime.Object{testNode("node-1", "z", "1", "8Gi"), low, high}, func(w *world) {
		w.createPod(prioritized(testPod("thief", "1", ""), 50))
		time.Sleep(time.Minute)
		if err := w.client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "default", "low"); err != nil {
			t.Fatal(err)
		}
		w.wantNode("high", "node-1")
		w.wantNode("thief", "")
	})
}
