package daemonset

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
	"github.com/setpoint-io/setpoint/controllers/reconcile/revisions"
)

// cluster is a world with the controller and three nodes.
type cluster struct{ *reconciletest.World }

// bubble runs a test with the controller in a bubble.
func bubble(t *testing.T, body func(t *testing.T, w cluster)) {
	synctest.Test(t, func(t *testing.T) {
		w := cluster{reconciletest.New(t)}
		for _, name := range []string{"a", "b", "c"} {
			reconciletest.Add(w.World, node(name))
		}
		w.Run(New())
		body(t, w)
	})
}

// live plays scheduler and nodes until nothing changes.
func (w cluster) live() {
	for range 12 {
		w.Settle()
		for _, p := range w.Pods("ns") {
			if p.DeletionTimestamp != nil {
				w.RemovePod(&p)
				continue
			}
			p.Spec.NodeName = nodeOf(&p)
			reconciletest.SetReady(&p, true)
			w.Put(&p)
		}
	}
	w.Settle()
}

func (w cluster) set(t *testing.T) *appsv1.DaemonSet {
	t.Helper()
	ds, err := w.Client.AppsV1().DaemonSets("ns").Get(t.Context(), "agent", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

func (w cluster) setImage(t *testing.T, image string) {
	t.Helper()
	ds := w.set(t)
	ds.Spec.Template.Spec.Containers[0].Image = image
	if _, err := w.Client.AppsV1().DaemonSets("ns").Update(t.Context(), ds, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// numbers are those of all revisions.
func (w cluster) numbers(t *testing.T) (numbers []int64) {
	t.Helper()
	list, err := w.Client.AppsV1().ControllerRevisions("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list.Items {
		numbers = append(numbers, r.Revision)
	}
	slices.Sort(numbers)
	return numbers
}

// images are those of the pods by node.
func (w cluster) images() map[string]string {
	out := map[string]string{}
	for _, p := range w.Pods("ns") {
		out[nodeOf(&p)] += p.Spec.Containers[0].Image
	}
	return out
}

func everywhere(image string) map[string]string {
	return map[string]string{"a": image, "b": image, "c": image}
}

func TestOnePodEachAndThenRests(t *testing.T) {
	bubble(t, func(t *testing.T, w cluster) {
		reconciletest.Add(w.World, newSet())
		w.live()
		if diff := cmp.Diff(everywhere("agent:1"), w.images()); diff != "" {
			t.Error(diff)
		}
		want := appsv1.DaemonSetStatus{DesiredNumberScheduled: 3, CurrentNumberScheduled: 3, NumberReady: 3, NumberAvailable: 3,
			UpdatedNumberScheduled: 3, ObservedGeneration: 1}
		if diff := cmp.Diff(want, w.set(t).Status); diff != "" {
			t.Error(diff)
		}
		w.Writes()
		time.Sleep(time.Hour)
		w.live()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("an unchanged world was written to: %v", writes)
		}
	})
}

func TestFollowsNodes(t *testing.T) {
	bubble(t, func(t *testing.T, w cluster) {
		reconciletest.Add(w.World, newSet())
		reconciletest.Add(w.World, node("d"))
		w.live()
		if n := len(w.Pods("ns")); n != 4 {
			t.Errorf("%d pods after a node came, want 4", n)
		}
		evicts := node("a", tainted(corev1.TaintEffectNoExecute, "x"))
		if _, err := w.Client.CoreV1().Nodes().Update(t.Context(), evicts, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := w.Client.CoreV1().Nodes().Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.live()
		if _, on := w.images()["a"]; on {
			t.Error("a pod stays on a node that evicts it")
		}
		if n := w.set(t).Status.DesiredNumberScheduled; n != 2 {
			t.Errorf("%d nodes wanted, want 2", n)
		}
	})
}

// A rollout replaces all pods and keeps the history; going back gives the old revision a new number, and the limit is kept.
func TestRolloutAndBack(t *testing.T) {
	bubble(t, func(t *testing.T, w cluster) {
		ds := newSet()
		ds.Spec.RevisionHistoryLimit = new(int32(1))
		reconciletest.Add(w.World, ds)
		w.live()
		for _, c := range []struct {
			image   string
			numbers []int64
		}{{"agent:2", []int64{1, 2}}, {"agent:1", []int64{2, 3}}, {"agent:3", []int64{3, 4}}} {
			w.setImage(t, c.image)
			w.live()
			if diff := cmp.Diff(everywhere(c.image), w.images()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.numbers, w.numbers(t)); diff != "" {
				t.Errorf("%s: %s", c.image, diff)
			}
		}
	})
}

// Failed pods are replaced after growing pauses, and each time an event says so.
func TestFailedPods(t *testing.T) {
	bubble(t, func(t *testing.T, w cluster) {
		reconciletest.Add(w.World, newSet(onNodeA))
		for range 30 {
			w.Settle()
			for _, p := range w.Pods("ns") {
				if p.DeletionTimestamp != nil {
					w.RemovePod(&p)
				} else if p.Status.Phase != corev1.PodFailed {
					p.Spec.NodeName = "a"
					failed(&p)
					w.Put(&p)
				}
			}
			time.Sleep(time.Second)
		}
		told := 0
		for _, e := range w.Events.List() {
			if strings.HasPrefix(e, "Warning FailedDaemonPod Found failed daemon pod ns/agent-") {
				told++
			}
		}
		if told < 4 || told > 6 { // after 0, 1, 3, 7, 15, 31 seconds, and the nodes' own time
			t.Errorf("%d failed pods were replaced in %v", told, 36*time.Second)
		}
	})
}

// Pods and revisions of an earlier DaemonSet are adopted, not replaced.
func TestAdopts(t *testing.T) {
	bubble(t, func(t *testing.T, w cluster) {
		ds := newSet()
		data, err := revisions.Data(&ds.Spec.Template)
		if err != nil {
			t.Fatal(err)
		}
		labels := map[string]string{"app": "agent", hashLabel: "earlier"}
		reconciletest.Add(w.World, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "agent-earlier", Labels: labels},
			Data: runtime.RawExtension{Raw: data}, Revision: 7})
		p := pod("a")
		p.Labels, p.Spec.Containers = labels, ds.Spec.Template.Spec.Containers
		reconciletest.Add(w.World, p)
		reconciletest.Add(w.World, ds)
		w.live()
		if diff := cmp.Diff(everywhere("agent:1"), w.images()); diff != "" {
			t.Error(diff)
		}
		kept, err := w.Client.CoreV1().Pods("ns").Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil || !metav1.IsControlledBy(kept, w.set(t)) {
			t.Errorf("the pod was not adopted: %v, %v", kept, err)
		}
		if diff := cmp.Diff([]int64{7}, w.numbers(t)); diff != "" {
			t.Error(diff)
		}
	})
}

// Of two revisions of one template the newer stays; pods of the other are labelled anew and go on.
func TestDuplicates(t *testing.T) {
	bubble(t, func(t *testing.T, w cluster) {
		reconciletest.Add(w.World, newSet())
		w.live()
		list, err := w.Client.AppsV1().ControllerRevisions("ns").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("%v, %v", list, err)
		}
		before := w.Pods("ns")
		twin := list.Items[0].DeepCopy()
		twin.Name, twin.UID, twin.Revision = "agent-twin", "", 2
		twin.Labels[hashLabel] = "twin"
		reconciletest.Add(w.World, twin)
		w.live()
		if diff := cmp.Diff([]int64{2}, w.numbers(t)); diff != "" {
			t.Error(diff)
		}
		for i, p := range w.Pods("ns") {
			if p.UID != before[i].UID || p.Labels[hashLabel] != "twin" {
				t.Errorf("pod %s with labels %v, was %s", p.Name, p.Labels, before[i].Name)
			}
		}
	})
}

// A revision that has the name of a new one but holds another template makes the new one take another hash.
func TestCollision(t *testing.T) {
	bubble(t, func(t *testing.T, w cluster) {
		ds := newSet()
		name := "agent-" + revisions.TemplateHash(&ds.Spec.Template, nil)
		reconciletest.Add(w.World, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
			Data: runtime.RawExtension{Raw: []byte("{}")}, Revision: 1})
		reconciletest.Add(w.World, ds)
		w.live()
		if n := collisions(w.set(t)); n != 1 {
			t.Errorf("%d collisions, want 1", n)
		}
		if diff := cmp.Diff(everywhere("agent:1"), w.images()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestSelectsAll(t *testing.T) {
	bubble(t, func(t *testing.T, w cluster) {
		ds := newSet()
		ds.Spec.Selector = &metav1.LabelSelector{}
		reconciletest.Add(w.World, ds)
		w.live()
		if len(w.Pods("ns")) > 0 || !slices.ContainsFunc(w.Events.List(), func(e string) bool { return strings.HasPrefix(e, "Warning SelectingAll") }) {
			t.Error("a DaemonSet that selects all pods was acted on, or nobody was told")
		}
	})
}

// What is wanted is told, though the pods are refused.
func TestRefusedPods(t *testing.T) {
	bubble(t, func(t *testing.T, w cluster) {
		w.Client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("exceeded quota: q"))
		})
		reconciletest.Add(w.World, newSet())
		w.live()
		if s := w.set(t).Status; s.DesiredNumberScheduled != 3 || s.CurrentNumberScheduled != 0 || s.ObservedGeneration != 1 {
			t.Errorf("status %+v", s)
		}
		if !slices.ContainsFunc(w.Events.List(), func(e string) bool { return strings.HasPrefix(e, "Warning FailedCreate") }) {
			t.Error("nobody was told")
		}
	})
}
