package statefulset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
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

// bubble runs a test with the controller in a bubble.
func bubble(t *testing.T, body func(t *testing.T, w *reconciletest.World)) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		w.Run(New())
		body(t, w)
	})
}

// add puts a set into the world, without the uid that tables of plans need.
func add(w *reconciletest.World, set *appsv1.StatefulSet) {
	set.UID = ""
	reconciletest.Add(w, set)
}

func get(t *testing.T, w *reconciletest.World) *appsv1.StatefulSet {
	t.Helper()
	set, err := w.Client.AppsV1().StatefulSets("ns").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// update changes the set as a user would, again when it lost a race.
func update(t *testing.T, w *reconciletest.World, change func(set *appsv1.StatefulSet)) {
	t.Helper()
	for range 10 {
		set := get(t, w)
		change(set)
		if _, err := w.Client.AppsV1().StatefulSets("ns").Update(t.Context(), set, metav1.UpdateOptions{}); err == nil {
			return
		}
	}
	t.Fatal("no update got through")
}

func image(name string) func(set *appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = name }
}

func replicas(n int32) func(set *appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { set.Spec.Replicas = &n }
}

// finish lets pods run until nothing changes any more.
func finish(w *reconciletest.World) {
	for range 30 {
		w.Settle()
		w.RunPods(true)
	}
	w.Settle()
}

// shown are the pods as "name image".
func shown(w *reconciletest.World) (out []string) {
	for _, p := range w.Pods("ns") {
		out = append(out, p.Name+" "+p.Spec.Containers[0].Image)
	}
	slices.Sort(out)
	return out
}

func history(t *testing.T, w *reconciletest.World) []*appsv1.ControllerRevision {
	t.Helper()
	list, err := w.Client.AppsV1().ControllerRevisions("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []*appsv1.ControllerRevision
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	revisions.Sort(out)
	return out
}

func assertQuiet(t *testing.T, w *reconciletest.World) {
	t.Helper()
	w.Writes()
	time.Sleep(20 * time.Minute)
	w.Settle()
	if writes := w.Writes(); len(writes) > 0 {
		t.Errorf("an unchanged world was written to: %v", writes)
	}
}

func TestLifeOfASet(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		add(w, newSet(2))
		w.Settle()
		if diff := cmp.Diff([]string{"web-0 v1"}, shown(w)); diff != "" {
			t.Errorf("before the first pod is ready: %s", diff)
		}
		finish(w)
		pod := w.Pods("ns")[1]
		revision := get(t, w).Status.UpdateRevision
		wantLabels := map[string]string{"app": "web", "apps.kubernetes.io/pod-index": "1",
			"statefulset.kubernetes.io/pod-name": "web-1", "controller-revision-hash": revision}
		if diff := cmp.Diff(wantLabels, pod.Labels); diff != "" {
			t.Error(diff)
		}
		if pod.Spec.Hostname != "web-1" || pod.Spec.Subdomain != "svc" || !metav1.IsControlledBy(&pod, get(t, w)) {
			t.Errorf("identity: %+v", pod)
		}
		want := appsv1.StatefulSetStatus{ObservedGeneration: 1, Replicas: 2, ReadyReplicas: 2, CurrentReplicas: 2,
			UpdatedReplicas: 2, AvailableReplicas: 2,
			CurrentRevision: revision, UpdateRevision: revision, CollisionCount: new(int32)}
		if diff := cmp.Diff(want, get(t, w).Status); diff != "" {
			t.Error(diff)
		}
		update(t, w, replicas(1))
		finish(w)
		wantEvents := []string{
			"Normal SuccessfulCreate Create Pod web-0 in StatefulSet web successful", "Normal SuccessfulCreate Create Pod web-1 in StatefulSet web successful",
			"Normal SuccessfulDelete Delete Pod web-1 in StatefulSet web successful",
		}
		if diff := cmp.Diff(wantEvents, w.Events.List()); diff != "" {
			t.Error(diff)
		}
		assertQuiet(t, w)
	})
}

func TestRolloutRollbackAndHistory(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		add(w, newSet(3))
		finish(w)
		for i, name := range []string{"v2", "v3", "v4", "v5"} {
			update(t, w, image(name))
			finish(w)
			if diff := cmp.Diff([]string{"web-0 " + name, "web-1 " + name, "web-2 " + name}, shown(w)); diff != "" {
				t.Error(diff)
			}
			if h := history(t, w); h[len(h)-1].Revision != int64(i)+2 || len(h) > 3 {
				t.Errorf("%d revisions, the last is number %d", len(h), h[len(h)-1].Revision)
			}
		}
		before := history(t, w)
		update(t, w, image("v4"))
		finish(w)
		after := history(t, w)
		if n := len(after) - 1; len(after) != len(before) || after[n].Revision != 6 || after[n].Name != before[n-1].Name ||
			after[n].Name != get(t, w).Status.CurrentRevision {
			t.Errorf("rolled back to %+v", after[n])
		}
		assertQuiet(t, w)
	})
}

func TestCanary(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		add(w, newSet(3, rolling(2, "1")))
		finish(w)
		update(t, w, image("v2"))
		finish(w)
		s := get(t, w).Status
		if s.CurrentRevision == s.UpdateRevision || s.CurrentReplicas != 2 || s.UpdatedReplicas != 1 {
			t.Errorf("canary: %+v", s)
		}
		for _, name := range []string{"web-0", "web-2"} {
			if err := w.Client.CoreV1().Pods("ns").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		finish(w)
		if diff := cmp.Diff([]string{"web-0 v1", "web-1 v1", "web-2 v2"}, shown(w)); diff != "" {
			t.Errorf("pods that come back: %s", diff)
		}
		update(t, w, rolling(0, "2"))
		finish(w)
		if s := get(t, w).Status; s.CurrentRevision != s.UpdateRevision || s.CurrentReplicas != 3 {
			t.Errorf("after the partition: %+v", s)
		}
		assertQuiet(t, w)
	})
}

func TestAPodIsReplacedOnlyWhenItIsGone(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		add(w, newSet(2, parallel))
		finish(w)
		victim := w.Pods("ns")[0]
		if err := w.Client.CoreV1().Pods("ns").Delete(t.Context(), victim.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Writes()
		time.Sleep(time.Hour)
		if writes := w.Writes(); slices.ContainsFunc(writes, func(s string) bool { return strings.Contains(s, " pods ") }) {
			t.Errorf("while the pod is going: %v", writes)
		}
		w.RemovePod(&victim)
		w.Settle()
		if n := len(w.Pods("ns")); n != 2 || w.Pods("ns")[0].UID == victim.UID {
			t.Errorf("%d pods after it is gone", n)
		}
	})
}

func TestEvictedPodsComeBack(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		add(w, newSet(1))
		w.Settle()
		p := w.Pods("ns")[0]
		p.Status.Phase = corev1.PodFailed
		w.Put(&p)
		w.Settle()
		if got := w.Pods("ns"); len(got) != 1 || got[0].UID == p.UID {
			t.Errorf("pods %v", got)
		}
	})
}

// The name of a pod may be taken by one of somebody else: it is left alone, and the set goes on as soon as it is gone.
func TestATakenName(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		stranger := reconciletest.Add(w, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "ns"}})
		add(w, newSet(1))
		time.Sleep(time.Hour)
		if got := w.Pods("ns"); len(got) != 1 || len(got[0].OwnerReferences) > 0 {
			t.Fatalf("pods %v", got)
		}
		w.RemovePod(stranger)
		synctest.Wait()
		if got := w.Pods("ns"); len(got) != 1 || got[0].UID == stranger.UID {
			t.Errorf("pods %v", got)
		}
	})
}

func TestAdoptsByNameAndReleases(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		for _, name := range []string{"web-0", "web-01", "web-x", "other-0"} {
			reconciletest.Add(w, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: map[string]string{"app": "web"}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "v0"}}}})
		}
		add(w, newSet(1, onDelete))
		finish(w)
		for _, p := range w.Pods("ns") {
			if owned := len(p.OwnerReferences) > 0; owned != (p.Name == "web-0") {
				t.Errorf("%s is owned: %v", p.Name, owned)
			}
			if p.Name == "web-0" && p.Labels["statefulset.kubernetes.io/pod-name"] != "web-0" {
				t.Errorf("adopted without an identity: %v", p.Labels)
			}
		}
		p := w.Pods("ns")[1]
		p.Labels = map[string]string{"app": "debug"}
		w.Put(&p)
		finish(w)
		if len(w.Pods("ns")[1].OwnerReferences) > 0 {
			t.Error("a relabelled pod is still owned")
		}
	})
}

func TestClaimsFollowTheRetentionPolicy(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		add(w, newSet(2, claims(remove, remove)))
		finish(w)
		owners := func() (out []string) {
			list, err := w.Client.CoreV1().PersistentVolumeClaims("ns").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range list.Items {
				out = append(out, c.Name+" "+c.OwnerReferences[0].Kind)
				if c.Labels["app"] != "web" || len(c.OwnerReferences) != 1 {
					t.Errorf("claim %+v", c.ObjectMeta)
				}
			}
			return out
		}
		if diff := cmp.Diff([]string{"data-web-0 StatefulSet", "data-web-1 StatefulSet"}, owners()); diff != "" {
			t.Error(diff)
		}
		if v := w.Pods("ns")[1].Spec.Volumes; len(v) != 1 || v[0].PersistentVolumeClaim.ClaimName != "data-web-1" {
			t.Errorf("volumes %v", v)
		}
		update(t, w, replicas(1))
		finish(w)
		if diff := cmp.Diff([]string{"data-web-0 StatefulSet", "data-web-1 Pod"}, owners()); diff != "" {
			t.Error(diff)
		}
		update(t, w, replicas(2))
		finish(w)
		if n := len(w.Pods("ns")); n != 1 {
			t.Errorf("%d pods while the claim of the pod before is there", n)
		}
		if err := w.Client.CoreV1().PersistentVolumeClaims("ns").Delete(t.Context(), "data-web-1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		finish(w)
		if diff := cmp.Diff([]string{"data-web-0 StatefulSet", "data-web-1 StatefulSet"}, owners()); diff != "" {
			t.Error(diff)
		}
		assertQuiet(t, w)
	})
}

func TestRefusedPods(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		var tries atomic.Int32
		var allow atomic.Bool
		w.Client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			tries.Add(1)
			if !allow.Load() {
				return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("exceeded quota: q"))
			}
			return false, nil, nil
		})
		add(w, newSet(100, parallel))
		synctest.Wait()
		if tries.Load() > 5 { // one for each pass; the set's own revision and status bring some
			t.Errorf("an API that refuses was asked %d times at once", tries.Load())
		}
		want := "Warning FailedCreate Create Pod web-0 in StatefulSet web failed error: pods is forbidden: exceeded quota: q"
		if got := w.Events.List(); len(got) == 0 || got[0] != want {
			t.Errorf("events %v", got)
		}
		time.Sleep(time.Second)
		allow.Store(true)
		time.Sleep(10 * time.Minute)
		if n := len(w.Pods("ns")); n != 100 {
			t.Errorf("%d pods", n)
		}
	})
}

// A revision's name may be taken by other data: the next hash is another one, and the status counts it.
func TestCollision(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		first, err := newRevision(newSet(1), 1)
		if err != nil {
			t.Fatal(err)
		}
		reconciletest.Add(w, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: first.Name, Namespace: "ns"}, Data: runtime.RawExtension{Raw: []byte(`{}`)}})
		add(w, newSet(1))
		finish(w)
		s := get(t, w).Status
		if *s.CollisionCount != 1 || s.UpdateRevision != revisions.Name("web", revisions.DataHash(first.Data.Raw, new(int32(1)))) || len(w.Pods("ns")) != 1 {
			t.Errorf("status %+v", s)
		}
		assertQuiet(t, w)
	})
}

func TestMinReadySeconds(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		add(w, newSet(2, minReady(30)))
		w.Settle()
		w.RunPods(true)
		time.Sleep(29 * time.Second)
		if n := len(w.Pods("ns")); n != 1 || get(t, w).Status.AvailableReplicas != 0 {
			t.Errorf("%d pods before the first is available", n)
		}
		time.Sleep(2 * time.Second)
		if n := len(w.Pods("ns")); n != 2 || get(t, w).Status.AvailableReplicas != 1 {
			t.Errorf("%d pods after", n)
		}
	})
}

func TestADyingSetIsLeftAlone(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		set := newSet(3)
		set.Finalizers, set.DeletionTimestamp = []string{metav1.FinalizerDeleteDependents}, new(metav1.NewTime(time.Now()))
		add(w, set)
		w.Settle()
		if diff := cmp.Diff([]string{"update statefulsets/status ns/web"}, w.Writes()); diff != "" {
			t.Error(diff)
		}
		if h := history(t, w); len(h) > 0 {
			t.Errorf("revisions of a dying set: %v", fmt.Sprint(h))
		}
	})
}
