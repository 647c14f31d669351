package volumeexpander

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

func size(s string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(s)}
}

func newClaim(asks, has string, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "uid-c"},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "v", Resources: corev1.VolumeResourceRequirements{Requests: size(asks)}},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: phase, Capacity: size(has)},
	}
}

func newVolume(claim string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
	if claim != "" {
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: "c", UID: "uid-c"}
	}
	return v
}

func TestWhoWaits(t *testing.T) {
	half := newVolume("c")
	half.Annotations = map[string]string{resizedFrom: "5Gi"}
	foreign := newVolume("c")
	foreign.Spec.ClaimRef.UID = "uid-other"
	for name, c := range map[string]struct {
		claim  *corev1.PersistentVolumeClaim
		volume *corev1.PersistentVolume
		want   bool
	}{
		"asks for more":        {newClaim("9Gi", "5Gi", corev1.ClaimBound), newVolume("c"), true},
		"has what it asks for": {newClaim("5Gi", "5Gi", corev1.ClaimBound), newVolume("c"), false},
		"file system to grow":  {newClaim("5Gi", "5Gi", corev1.ClaimBound), half, true},
		"not bound":            {newClaim("9Gi", "0", corev1.ClaimPending), newVolume("c"), false},
		"free volume":          {newClaim("9Gi", "5Gi", corev1.ClaimBound), newVolume(""), false},
		"another's volume":     {newClaim("9Gi", "5Gi", corev1.ClaimBound), foreign, false},
	} {
		if got := waits(c.claim, c.volume); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

func TestOneEventForEachGrowth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		w.Run(New())
		reconciletest.Add(w, newVolume("c"))
		reconciletest.Add(w, newClaim("5Gi", "5Gi", corev1.ClaimBound))
		w.Settle()
		claims := w.Client.CoreV1().PersistentVolumeClaims("ns")
		edit := func(f func(c *corev1.PersistentVolumeClaim)) {
			c, err := claims.Get(t.Context(), "c", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			f(c)
			if _, err := claims.Update(t.Context(), c, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
		edit(func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"a": "b"} })
		if events := w.Events.List(); len(events) > 0 {
			t.Errorf("%v", events)
		}
		edit(func(c *corev1.PersistentVolumeClaim) { c.Spec.Resources.Requests = size("9Gi") })
		edit(func(c *corev1.PersistentVolumeClaim) { c.Labels = nil })
		if diff := cmp.Diff([]string{"Normal ExternalExpanding waiting for an external controller to expand this PVC"}, w.Events.List()); diff != "" {
			t.Error(diff)
		}
	})
}
