package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/controllers/scheduler/profile"
)

// world is a running scheduler over a fake API, inside a bubble.
type world struct {
	t      *testing.T
	client *fake.Clientset
	// refuse, if set, answers a binding in place of the API.
	refuse atomic.Pointer[error]
	writes atomic.Int64 // status patches
	// writing is held while a pod is read and written: what the fake does in two steps, the API does in one.
	writing sync.Mutex
	// deletions counts deletions that only began, see leaveGracefully.
	deletions atomic.Int64
	ledger    numbers.Ledger
	// end ends the scheduler's term, and returns when it has ended.
	end func()
}

// inWorld runs the test with a scheduler that has settled over the given objects.
func inWorld(t *testing.T, objects []runtime.Object, test func(w *world)) {
	t.Helper()
	inWorldOf(t, profile.Config{}, objects, test)
}

// inWorldOf is inWorld with profiles.
func inWorldOf(t *testing.T, profiles profile.Config, objects []runtime.Object, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := &world{t: t, client: fake.NewSimpleClientset(objects...)}
		w.client.PrependReactor("create", "pods", w.bind)
		w.client.PrependReactor("patch", "pods", w.patch)
		factory := informers.NewSharedInformerFactory(w.client, 0)
		cfg := Config{Client: w.client, Informers: factory, Profiles: profiles, Numbers: &w.ledger, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
		if _, err := informersOf(factory, Reads(cfg.serves)); err != nil {
			t.Fatal(err)
		}
		factory.Start(ctx.Done())
		done := make(chan error)
		go func() { done <- Run(ctx, cfg) }()
		w.end = sync.OnceFunc(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
			factory.Shutdown()
		})
		defer w.end() // deferred, so that a failing test ends the bubble too
		synctest.Wait()
		test(w)
	})
}

// patch does what the API does on patches of pods, and counts them.
func (w *world) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	w.writes.Add(1)
	w.writing.Lock()
	defer w.writing.Unlock()
	return clienttesting.ObjectReaction(w.client.Tracker())(action)
}

// bind does what the API does on pods/binding.
func (w *world) bind(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetSubresource() != "binding" {
		return false, nil, nil
	}
	if err := w.refuse.Load(); err != nil {
		return true, nil, *err
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	binding := action.(clienttesting.CreateAction).GetObject().(*corev1.Binding)
	gvr := corev1.SchemeGroupVersion.WithResource("pods")
	object, err := w.client.Tracker().Get(gvr, action.GetNamespace(), binding.Name)
	if err != nil {
		return true, nil, err
	}
	pod := object.(*corev1.Pod).DeepCopy()
	if pod.Spec.NodeName != "" {
		return true, nil, apierrors.NewConflict(gvr.GroupResource(), pod.Name, fmt.Errorf("already bound to %s", pod.Spec.NodeName))
	}
	pod.Spec.NodeName = binding.Target.Name
	return true, binding, w.client.Tracker().Update(gvr, pod, pod.Namespace)
}

// leaveGracefully makes deletions begin only, as with a kubelet that takes its time.
func (w *world) leaveGracefully() {
	w.client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		w.deletions.Add(1)
		gvr := corev1.SchemeGroupVersion.WithResource("pods")
		object, err := w.client.Tracker().Get(gvr, action.GetNamespace(), action.(clienttesting.DeleteAction).GetName())
		if err != nil {
			return true, nil, err
		}
		pod := object.(*corev1.Pod).DeepCopy()
		now := metav1.Now()
		pod.DeletionTimestamp = &now
		return true, nil, w.client.Tracker().Update(gvr, pod, pod.Namespace)
	})
}

func (w *world) createPod(pod *corev1.Pod) {
	w.t.Helper()
	if _, err := w.client.CoreV1().Pods(pod.Namespace).Create(w.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) pod(name string) *corev1.Pod {
	w.t.Helper()
	pod, err := w.client.CoreV1().Pods("default").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return pod
}

func (w *world) wantNode(name, node string) {
	w.t.Helper()
	synctest.Wait()
	if got := w.pod(name).Spec.NodeName; got != node {
		w.t.Errorf("%s is on %q, want %q", name, got, node)
	}
}

func (w *world) wantCondition(name, reason, message string) {
	w.t.Helper()
	synctest.Wait()
	for _, c := range w.pod(name).Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == reason && strings.Contains(c.Message, message) {
			return
		}
	}
	w.t.Errorf("%s: no PodScheduled=False %s %q in %+v", name, reason, message, w.pod(name).Status.Conditions)
}

func (w *world) wantEvent(reason, message string) {
	w.t.Helper()
	synctest.Wait()
	list, err := w.client.CoreV1().Events("").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var seen []string
	for _, e := range list.Items {
		if e.Reason == reason && strings.Contains(e.Message, message) && e.Source.Component == "default-scheduler" {
			return
		}
		seen = append(seen, e.Reason+": "+e.Message)
	}
	w.t.Errorf("no event %s %q in %q", reason, message, seen)
}

func TestBindsAtOnce(t *testing.T) {
	inWorld(t, []runtime.Object{testNode("node-1", "z", "4", "8Gi")}, func(w *world) {
		start := time.Now()
		w.createPod(testPod("a", "1", "1Gi"))
		w.wantNode("a", "node-1")
		if waited := time.Since(start); waited > 0 {
			t.Errorf("bound after %v of waiting, want none", waited)
		}
		w.wantEvent("Scheduled", "Successfully assigned default/a to node-1")
	})
}

func TestPodsThatExistedBefore(t *testing.T) {
	objects := []runtime.Object{testNode("node-1", "z", "4", "8Gi"), bound(testPod("old", "3", ""), "node-1"), testPod("a", "1", ""), testPod("b", "1", "")}
	inWorld(t, objects, func(w *world) {
		onNode := 0
		for _, name := range []string{"a", "b"} {
			if w.pod(name).Spec.NodeName != "" {
				onNode++
			}
		}
		if onNode != 1 {
			t.Errorf("%d pods bound, want 1: only one cpu was left", onNode)
		}
	})
}

func TestUnschedulableSaysWhyAndWaits(t *testing.T) {
	inWorld(t, []runtime.Object{testNode("node-1", "z", "1", "8Gi")}, func(w *world) {
		w.createPod(testPod("a", "600m", ""))
		w.wantNode("a", "node-1")
		w.createPod(testPod("b", "600m", ""))
		message := "0/1 nodes are available: 1 Insufficient cpu."
		w.wantCondition("b", corev1.PodReasonUnschedulable, message)
		w.wantEvent("FailedScheduling", message)

		before := w.writes.Load()
		time.Sleep(4 * time.Minute)
		if extra := w.writes.Load() - before; extra != 0 {
			t.Errorf("%d status writes while nothing changed, want 0", extra)
		}
		if err := w.client.CoreV1().Pods("default").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.wantNode("b", "node-1") // at once: nothing else waits, so its backoff does not hold it
	})
}

func TestNodeArrivalWakesEverybody(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.createPod(testPod("a", "1", ""))
		w.wantCondition("a", corev1.PodReasonUnschedulable, "no nodes available to schedule pods")
		if _, err := w.client.CoreV1().Nodes().Create(t.Context(), testNode("node-1", "z", "4", "8Gi"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.wantNode("a", "node-1")
	})
}

func TestTaintLiftedWakes(t *testing.T) {
	node := testNode("node-1", "z", "4", "8Gi")
	node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
	inWorld(t, []runtime.Object{node}, func(w *world) {
		w.createPod(testPod("a", "1", ""))
		w.wantNode("a", "")
		ready := testNode("node-1", "z", "4", "8Gi")
		if _, err := w.client.CoreV1().Nodes().Update(t.Context(), ready, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.wantNode("a", "node-1")
	})
}

func TestSchedulingGates(t *testing.T) {
	inWorld(t, []runtime.Object{testNode("node-1", "z", "4", "8Gi")}, func(w *world) {
		pod := testPod("a", "1", "")
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
		w.createPod(pod)
		w.wantNode("a", "")
		w.wantCondition("a", corev1.PodReasonSchedulingGated, gatedMessage)
		open := w.pod("a").DeepCopy()
		open.Spec.SchedulingGates = nil
		if _, err := w.client.CoreV1().Pods("default").Update(t.Context(), open, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.wantNode("a", "node-1")
	})
}

func TestOtherSchedulersPodsAreLeftAlone(t *testing.T) {
	inWorld(t, []runtime.Object{testNode("node-1", "z", "4", "8Gi")}, func(w *world) {
		pod := testPod("a", "1", "")
		pod.Spec.SchedulerName = "mine"
		w.createPod(pod)
		w.wantNode("a", "")
	})
}

func TestRefusedBindIsForgottenAndTriedAgain(t *testing.T) {
	inWorld(t, []runtime.Object{testNode("node-1", "z", "1", "8Gi")}, func(w *world) {
		var refusal error = apierrors.NewInternalError(fmt.Errorf("no quorum"))
		w.refuse.Store(&refusal)
		w.createPod(testPod("a", "1", ""))
		w.wantNode("a", "")
		w.refuse.Store(nil)
		time.Sleep(backoffMin + time.Millisecond)
		w.wantNode("a", "node-1")
	})
}

func TestLostAnswerOfABindingKeepsTheAssumption(t *testing.T) {
	inWorld(t, []runtime.Object{testNode("node-1", "z", "1", "8Gi"), testNode("node-2", "z", "1", "8Gi")}, func(w *world) {
		w.client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			handled, object, err := w.bind(action)
			if handled && err == nil {
				return true, nil, apierrors.NewTimeoutError("the answer was lost", 1)
			}
			return handled, object, err
		})
		for _, name := range []string{"a", "b"} {
			w.createPod(testPod(name, "1", ""))
		}
		synctest.Wait()
		if a, b := w.pod("a").Spec.NodeName, w.pod("b").Spec.NodeName; a == b || a == "" || b == "" {
			t.Errorf("a on %q and b on %q, want one each", a, b)
		}
		w.wantErrors("", "")
		w.wantEvent("Scheduled", "Successfully assigned default/a to node-")
	})
}

func TestHigherPriorityFirst(t *testing.T) {
	objects := []runtime.Object{testNode("node-1", "z", "1", "8Gi")}
	for i := range 5 {
		pod := testPod(fmt.Sprint("p", i), "1", "")
		priority := int32(i)
		pod.Spec.Priority = &priority
		objects = append(objects, pod)
	}
	inWorld(t, objects, func(w *world) { w.wantNode("p4", "node-1") })
}

func TestManyPodsSettle(t *testing.T) {
	var objects []runtime.Object
	for _, n := range nodesNamed(5) {
		objects = append(objects, n)
	}
	inWorld(t, objects, func(w *world) {
		for i := range 200 {
			w.createPod(testPod(fmt.Sprint("p", i), "100m", ""))
			if i%20 == 0 {
				synctest.Wait() // the fake API's watches hold 100 events
			}
		}
		synctest.Wait()
		counts := map[string]int{}
		for i := range 200 {
			counts[w.pod(fmt.Sprint("p", i)).Spec.NodeName]++
		}
		for name, n := range counts {
			if name == "" || n < 36 || n > 44 { // scores are whole numbers: nodes with nearly as many pods have the same
				t.Errorf("%q has %d pods, want about 40", name, n)
			}
		}
	})
}
