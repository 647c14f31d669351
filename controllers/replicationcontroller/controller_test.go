package replicationcontroller

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

func newController(replicas int32) *corev1.ReplicationController {
	labels := map[string]string{"app": "web"}
	return &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns"},
		Spec: corev1.ReplicationControllerSpec{Replicas: &replicas, Selector: labels,
			Template: &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}},
	}
}

func TestConversionThereAndBack(t *testing.T) {
	rc := newController(3)
	rc.Spec.MinReadySeconds = 3
	rc.Status = corev1.ReplicationControllerStatus{Replicas: 5, FullyLabeledReplicas: 4, ReadyReplicas: 3, AvailableReplicas: 2, ObservedGeneration: 7,
		Conditions: []corev1.ReplicationControllerCondition{{Type: corev1.ReplicationControllerReplicaFailure, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(time.Unix(1e9, 0)), Reason: "FailedCreate", Message: "exceeded quota"}}}
	if diff := cmp.Diff(rc, fromSet(asSet(rc))); diff != "" {
		t.Error(diff)
	}
}

func TestKeepsItsPodsAndThenRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		w.Run(New())
		orphan := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "orphan", Namespace: "ns", Labels: map[string]string{"app": "web"}}}
		reconciletest.Add(w, orphan)
		rc := reconciletest.Add(w, newController(3))
		w.Settle()
		w.RunPods(true)
		w.Settle()
		for _, p := range w.Pods("ns") {
			if ref := metav1.GetControllerOf(&p); ref == nil || ref.APIVersion != "v1" || ref.Kind != "ReplicationController" || ref.UID != rc.UID {
				t.Errorf("pod %s is controlled by %v", p.Name, ref)
			}
		}
		got, err := w.Client.CoreV1().ReplicationControllers("ns").Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if want := (corev1.ReplicationControllerStatus{Replicas: 3, FullyLabeledReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, ObservedGeneration: 1}); !cmp.Equal(got.Status, want) {
			t.Errorf("status %+v", got.Status)
		}
		w.Writes()
		w.RunPods(true)
		w.Settle()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("an unchanged world was written to: %v", writes)
		}
	})
}
