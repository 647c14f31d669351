package replicaset

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

func newSet(name string, replicas int32) *appsv1.ReplicaSet {
	labels := map[string]string{"app": name}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
		},
	}
}

// bubble runs a test with the controller in a bubble.
func bubble(t *testing.T, body func(t *testing.T, w *reconciletest.World)) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		w.Run(New())
		body(t, w)
	})
}

func get(t *testing.T, w *reconciletest.World, name string) *appsv1.ReplicaSet {
	t.Helper()
	rs, err := w.Client.AppsV1().ReplicaSets("ns").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

func TestCreatesPodsAndThenRests(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		rs := reconciletest.Add(w, newSet("web", 5))
		w.Settle()
		pods := w.Pods("ns")
		if len(pods) != 5 {
			t.Fatalf("%d pods, want 5", len(pods))
		}
		for _, p := range pods {
			if !metav1.IsControlledBy(&p, rs) {
				t.Errorf("pod %s is not controlled by the ReplicaSet", p.Name)
			}
		}
		w.RunPods(true)
		w.Settle()
		if s := get(t, w, "web").Status; s.ReadyReplicas != 5 || s.AvailableReplicas != 5 || s.ObservedGeneration != 1 {
			t.Errorf("status %+v", s)
		}
		w.Writes()
		w.RunPods(true)
		w.Settle()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("an unchanged world was written to: %v", writes)
		}
	})
}

func TestReplacesATerminatingPodAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		reconciletest.Add(w, newSet("web", 3))
		w.Settle()
		w.RunPods(true)
		w.Settle()
		w.Writes()
		victim := w.Pods("ns")[0]
		if err := w.Client.CoreV1().Pods("ns").Delete(t.Context(), victim.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := len(w.Pods("ns")); n != 4 {
			t.Fatalf("%d pods without any time passing, want 3 + the terminating one", n)
		}
		if n := *get(t, w, "web").Status.TerminatingReplicas; n != 1 {
			t.Errorf("%d terminating replicas, want 1", n)
		}
	})
}

func TestScalesDownAndDeletesOnlyItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		reconciletest.Add(w, newSet("web", 4))
		foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "foreign", Namespace: "ns", Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "other", UID: "other", Controller: new(true)}}}}
		reconciletest.Add(w, foreign)
		w.Settle()
		rs := get(t, w, "web")
		rs.Spec.Replicas = new(int32)
		if _, err := w.Client.AppsV1().ReplicaSets("ns").Update(t.Context(), rs, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		var names []string
		for _, p := range w.Pods("ns") {
			names = append(names, p.Name)
		}
		if diff := cmp.Diff([]string{"foreign"}, names); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAdoptsOrphansAndReleasesStrangers(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		reconciletest.Add(w, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "orphan", Namespace: "ns", Labels: map[string]string{"app": "web"}}})
		rs := reconciletest.Add(w, newSet("web", 1))
		w.Settle()
		pods := w.Pods("ns")
		if len(pods) != 1 || !metav1.IsControlledBy(&pods[0], rs) {
			t.Fatalf("the orphan was not adopted: %+v", pods)
		}
		pods[0].Labels = map[string]string{"app": "debug"}
		w.Put(&pods[0])
		w.Settle()
		if n := len(w.Pods("ns")); n != 2 {
			t.Fatalf("%d pods, want the released one and its replacement", n)
		}
		released, _ := w.Client.CoreV1().Pods("ns").Get(t.Context(), "orphan", metav1.GetOptions{})
		if len(released.OwnerReferences) != 0 {
			t.Errorf("the relabelled pod is still owned: %v", released.OwnerReferences)
		}
	})
}

// Pods that have ended are of no interest, whatever their labels: who owns them stays as it is, as with upstream.
func TestEndedPodsStayWhereTheyAre(t *testing.T) {
	for _, phase := range []corev1.PodPhase{corev1.PodFailed, corev1.PodSucceeded} {
		bubble(t, func(t *testing.T, w *reconciletest.World) {
			rs := reconciletest.Add(w, newSet("web", 1))
			w.Settle()
			relabelled := w.Pods("ns")[0]
			relabelled.Labels, relabelled.Status.Phase = map[string]string{"app": "debug"}, phase
			w.Put(&relabelled)
			orphan := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "orphan", Namespace: "ns", Labels: map[string]string{"app": "web"}}}
			orphan.Status.Phase = phase
			reconciletest.Add(w, orphan)
			w.Settle()
			for _, p := range w.Pods("ns") {
				if ours := metav1.IsControlledBy(&p, rs); ours == (p.Name == "orphan") {
					t.Errorf("%s %s: owned %v", phase, p.Name, ours)
				}
			}
		})
	}
}

// A ReplicaSet that a quota stops is tried again as soon as the quota has more room, however long its pauses are.
func TestMoreQuotaWakesAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		quota := func(pods string, used string) *corev1.ResourceQuota {
			return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q", Namespace: "ns"}, Status: corev1.ResourceQuotaStatus{
				Hard: corev1.ResourceList{"pods": resource.MustParse(pods)}, Used: corev1.ResourceList{"pods": resource.MustParse(used)}}}
		}
		var full atomic.Bool
		full.Store(true)
		w.Client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			if full.Load() {
				return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("exceeded quota: q"))
			}
			return false, nil, nil
		})
		reconciletest.Add(w, quota("3", "3"))
		reconciletest.Add(w, newSet("web", 2))
		time.Sleep(time.Hour) // its pauses have grown
		full.Store(false)
		for _, changed := range []*corev1.ResourceQuota{quota("3", "3"), quota("5", "3")} {
			if _, err := w.Client.CoreV1().ResourceQuotas("ns").UpdateStatus(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if n := len(w.Pods("ns")); n != 2 {
			t.Errorf("%d pods without any time passing, want 2", n)
		}
	})
}

func TestMoreRoom(t *testing.T) {
	quota := func(hard, used string) *corev1.ResourceQuota {
		q := &corev1.ResourceQuota{}
		if hard != "" {
			q.Status.Hard = corev1.ResourceList{"pods": resource.MustParse(hard)}
			q.Status.Used = corev1.ResourceList{"pods": resource.MustParse(used)}
		}
		return q
	}
	for name, c := range map[string]struct {
		was, now *corev1.ResourceQuota
		want     bool
	}{
		"same":    {quota("3", "3"), quota("3", "3"), false},
		"raised":  {quota("3", "3"), quota("4", "3"), true},
		"lowered": {quota("3", "3"), quota("2", "3"), false},
		"used":    {quota("3", "1"), quota("3", "2"), false},
		"freed":   {quota("3", "3"), quota("3", "2"), true},
		"lifted":  {quota("3", "3"), quota("", ""), true},
	} {
		if got := moreRoom(c.was, c.now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
