package deployment

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
	"github.com/setpoint-io/setpoint/controllers/replicaset"
)

func newDeployment(replicas, surge, unavailable int) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	s, u := intstr.FromInt(surge), intstr.FromInt(unavailable)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns"},
		Spec: appsv1.DeploymentSpec{
			Replicas:                new(int32(replicas)),
			RevisionHistoryLimit:    new(int32(2)),
			ProgressDeadlineSeconds: new(int32(600)),
			Selector:                &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &s, MaxUnavailable: &u}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "v1"}}}},
		},
	}
}

// bubble runs a test with the Deployment and ReplicaSet controllers.
func bubble(t *testing.T, body func(t *testing.T, w *reconciletest.World)) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		env := w.Env()
		env.Events = &reconciletest.Events{} // not those of Deployments
		w.RunIn(env, replicaset.New())
		w.Run(New())
		body(t, w)
	})
}

func get(t *testing.T, w *reconciletest.World) *appsv1.Deployment {
	t.Helper()
	d, err := w.Client.AppsV1().Deployments("ns").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func sets(t *testing.T, w *reconciletest.World) []appsv1.ReplicaSet {
	t.Helper()
	list, err := w.Client.AppsV1().ReplicaSets("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// update changes the Deployment as a user would, again when it lost a race.
func update(t *testing.T, w *reconciletest.World, change func(d *appsv1.Deployment)) {
	t.Helper()
	for range 10 {
		d := get(t, w)
		change(d)
		if _, err := w.Client.AppsV1().Deployments("ns").Update(t.Context(), d, metav1.UpdateOptions{}); err == nil {
			return
		}
	}
	t.Fatal("no update got through")
}

// finish lets pods run until nothing changes any more, calling each between.
func finish(w *reconciletest.World, ready bool, each func()) {
	for range 30 {
		w.Settle()
		each()
		w.RunPods(ready)
	}
	w.Settle()
}

func condition(d *appsv1.Deployment, t appsv1.DeploymentConditionType) string {
	for _, c := range d.Status.Conditions {
		if c.Type == t {
			return fmt.Sprintf("%s %s", c.Status, c.Reason)
		}
	}
	return "none"
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

func TestFirstRollout(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		reconciletest.Add(w, newDeployment(3, 1, 0))
		w.Settle()
		if got := condition(get(t, w), appsv1.DeploymentAvailable); got != "False MinimumReplicasUnavailable" {
			t.Errorf("available before any pod runs: %s", got)
		}
		finish(w, true, func() {})
		d := get(t, w)
		want := appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, TerminatingReplicas: new(int32)}
		got := d.Status
		got.Conditions = nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if got := condition(d, appsv1.DeploymentProgressing); got != "True NewReplicaSetAvailable" {
			t.Errorf("progressing: %s", got)
		}
		if got := condition(d, appsv1.DeploymentAvailable); got != "True MinimumReplicasAvailable" {
			t.Errorf("available: %s", got)
		}
		if d.Generation != 1 {
			t.Errorf("generation %d: the controller's own writes counted as changes of the wish", d.Generation)
		}
		if got := d.Annotations[revisionAnnotation]; got != "1" {
			t.Errorf("revision %q", got)
		}
		rs := sets(t, w)
		if diff := cmp.Diff([]string{"Normal ScalingReplicaSet Scaled up replica set " + rs[0].Name + " from 0 to 3"}, w.Events.List()); diff != "" {
			t.Error(diff)
		}
		assertQuiet(t, w)
	})
}

func TestRolloutKeepsItsBounds(t *testing.T) {
	for _, c := range []struct{ replicas, surge, unavailable int }{{3, 1, 0}, {3, 0, 1}, {10, 3, 2}, {1, 1, 0}, {4, 4, 4}, {5, 0, 5}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *reconciletest.World) {
				reconciletest.Add(w, newDeployment(c.replicas, c.surge, c.unavailable))
				finish(w, true, func() {})
				update(t, w, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "v2" })
				finish(w, true, func() { assertBounds(t, w, c.replicas, c.surge, c.unavailable) })
				for _, p := range w.Pods("ns") {
					if p.Spec.Containers[0].Image != "v2" {
						t.Errorf("pod %s still runs %s", p.Name, p.Spec.Containers[0].Image)
					}
				}
				d := get(t, w)
				if d.Status.UpdatedReplicas != int32(c.replicas) || d.Annotations[revisionAnnotation] != "2" {
					t.Errorf("not rolled out: %+v, revision %s", d.Status, d.Annotations[revisionAnnotation])
				}
				assertQuiet(t, w)
			})
		})
	}
}

func assertBounds(t *testing.T, w *reconciletest.World, replicas, surge, unavailable int) {
	t.Helper()
	active, ready := 0, 0
	for _, p := range w.Pods("ns") {
		if podstate.Active(&p) {
			active++
			if podstate.Ready(&p) {
				ready++
			}
		}
	}
	if active > replicas+surge {
		t.Errorf("%d live pods, at most %d allowed", active, replicas+surge)
	}
	if ready < replicas-unavailable {
		t.Errorf("%d ready pods, at least %d needed", ready, replicas-unavailable)
	}
}

func TestBrokenRolloutStopsAndUndoHeals(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		reconciletest.Add(w, newDeployment(4, 1, 1))
		finish(w, true, func() {})
		first := get(t, w).Spec.Template
		update(t, w, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "broken" })
		for range 10 {
			w.Settle()
			for _, p := range w.Pods("ns") {
				if p.DeletionTimestamp != nil {
					w.RemovePod(&p)
				} else if p.Spec.Containers[0].Image == "broken" {
					p.Spec.NodeName = "n"
					reconciletest.SetReady(&p, false)
					w.Put(&p)
				}
			}
			assertBounds(t, w, 4, 1, 1)
		}
		time.Sleep(11 * time.Minute)
		w.Settle()
		if got := condition(get(t, w), appsv1.DeploymentProgressing); got != "False ProgressDeadlineExceeded" {
			t.Errorf("progressing: %s", got)
		}
		update(t, w, func(d *appsv1.Deployment) { d.Spec.Template = first })
		finish(w, true, func() {})
		d := get(t, w)
		if got := d.Annotations[revisionAnnotation]; got != "3" {
			t.Errorf("revision %s after undo, want 3", got)
		}
		if got := condition(d, appsv1.DeploymentProgressing); got != "True NewReplicaSetAvailable" {
			t.Errorf("progressing: %s", got)
		}
		for _, rs := range sets(t, w) {
			if rs.Spec.Template.Spec.Containers[0].Image == "v1" && rs.Annotations[revisionHistoryAnnotation] != "1" {
				t.Errorf("history %q, want 1", rs.Annotations[revisionHistoryAnnotation])
			}
		}
		assertQuiet(t, w)
	})
}

func TestRecreateNeverMixes(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		d := newDeployment(3, 0, 0)
		d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		reconciletest.Add(w, d)
		finish(w, true, func() {})
		update(t, w, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "v2" })
		finish(w, true, func() {
			images := map[string]bool{}
			for _, p := range w.Pods("ns") {
				images[p.Spec.Containers[0].Image] = true
			}
			if len(images) > 1 {
				t.Errorf("two versions at once: %v", images)
			}
		})
		if s := get(t, w).Status; s.UpdatedReplicas != 3 || s.AvailableReplicas != 3 {
			t.Errorf("not recreated: %+v", s)
		}
		assertQuiet(t, w)
	})
}

func TestHistoryLimitAndScaleAndPause(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		reconciletest.Add(w, newDeployment(2, 1, 0))
		finish(w, true, func() {})
		for _, image := range []string{"v2", "v3", "v4", "v5"} {
			update(t, w, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = image })
			finish(w, true, func() {})
		}
		if n := len(sets(t, w)); n != 3 {
			t.Errorf("%d ReplicaSets, want the current one and two old ones", n)
		}
		update(t, w, func(d *appsv1.Deployment) { d.Spec.Paused = true })
		update(t, w, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "v6" })
		update(t, w, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(6)) })
		finish(w, true, func() {})
		if n := len(w.Pods("ns")); n != 6 {
			t.Errorf("%d pods after scaling a paused Deployment, want 6", n)
		}
		if got := condition(get(t, w), appsv1.DeploymentProgressing); got != "Unknown DeploymentPaused" {
			t.Errorf("progressing: %s", got)
		}
		for _, p := range w.Pods("ns") {
			if p.Spec.Containers[0].Image != "v5" {
				t.Errorf("a paused Deployment rolled out %s", p.Spec.Containers[0].Image)
			}
		}
		update(t, w, func(d *appsv1.Deployment) { d.Spec.Paused = false })
		finish(w, true, func() {})
		if s := get(t, w).Status; s.UpdatedReplicas != 6 {
			t.Errorf("not rolled out after resume: %+v", s)
		}
		assertQuiet(t, w)
	})
}
