package replicaset

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/controllertest"
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
func bubble(t *testing.T, body func(t *testing.T, w *controllertest.World)) {
	synctest.Test(t, func(t *testing.T) {
		w := controllertest.New(t)
		w.Run(func(ctx context.Context) error {
			return Run(ctx, Config{Client: w.Client, Informers: w.Informers, Events: w.Events})
		})
		body(t, w)
	})
}

func get(t *testing.T, w *controllertest.World, name string) *appsv1.ReplicaSet {
	t.Helper()
	rs, err := w.Client.AppsV1().ReplicaSets("ns").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return rs
}

func TestCreatesPodsAndThenRests(t *testing.T) {
	bubble(t, func(t *testing.T, w *controllertest.World) {
		rs := controllertest.Add(w, newSet("web", 5))
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
	bubble(t, func(t *testing.T, w *controllertest.World) {
		controllertest.Add(w, newSet("web", 3))
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
	bubble(t, func(t *testing.T, w *controllertest.World) {
		controllertest.Add(w, newSet("web", 4))
		foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "foreign", Namespace: "ns", Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "other", UID: "other", Controller: new(true)}}}}
		controllertest.Add(w, foreign)
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
	bubble(t, func(t *testing.T, w *controllertest.World) {
		controllertest.Add(w, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "orphan", Namespace: "ns", Labels: map[string]string{"app": "web"}}})
		rs := controllertest.Add(w, newSet("web", 1))
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
