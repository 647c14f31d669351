package ephemeralvolume

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

func newPod(volumes ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "uid-p"}}
	for _, name := range volumes {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "2"}},
				Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: new("fast")},
			}},
		}})
	}
	return pod
}

func claimOf(owner *corev1.Pod) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p-tmp"}}
	if owner != nil {
		claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("Pod"))}
	}
	return claim
}

func TestPlan(t *testing.T) {
	pod, other := newPod("tmp"), newPod()
	other.UID = "uid-other"
	for name, c := range map[string]struct {
		pod   *corev1.Pod
		found *corev1.PersistentVolumeClaim
		want  string
	}{
		"missing":        {pod, nil, "make p-tmp"},
		"made":           {pod, claimOf(pod), ""},
		"another's":      {pod, claimOf(nil), "PVC ns/p-tmp was not created for pod ns/p (pod is not owner)"},
		"a former pod's": {pod, claimOf(other), "PVC ns/p-tmp was not created for pod ns/p (pod is not owner)"},
	} {
		t.Run(name, func(t *testing.T) {
			claim, err := plan(c.pod, &c.pod.Spec.Volumes[0], func(string) *corev1.PersistentVolumeClaim { return c.found })
			got := ""
			if claim != nil {
				got = "make " + claim.Name
				want := claimOf(pod)
				want.Labels, want.Annotations = map[string]string{"l": "1"}, map[string]string{"a": "2"}
				want.Spec.StorageClassName = new("fast")
				if diff := cmp.Diff(want, claim); diff != "" {
					t.Error(diff)
				}
			} else if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	plain := newPod()
	plain.Spec.Volumes = []corev1.Volume{{Name: "tmp"}}
	if claim, err := plan(plain, &plain.Spec.Volumes[0], nil); claim != nil || err != nil {
		t.Errorf("%v, %v", claim, err)
	}
}

func TestClaimsAreMadeOnceAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		w.Run(New())
		reconciletest.Add(w, newPod("tmp", "more"))
		w.Settle()
		want := []string{"create persistentvolumeclaims ns/p-tmp", "create persistentvolumeclaims ns/p-more"}
		if diff := cmp.Diff(want, w.Changes()); diff != "" {
			t.Error(diff)
		}
		time.Sleep(time.Hour)
		if writes, events := w.Writes(), w.Events.List(); len(writes)+len(events) > 0 {
			t.Errorf("nothing has changed, but there is %v %v", writes, events)
		}
		if err := w.Client.CoreV1().PersistentVolumeClaims("ns").Delete(t.Context(), "p-tmp", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		if diff := cmp.Diff([]string{"delete persistentvolumeclaims ns/p-tmp", "create persistentvolumeclaims ns/p-tmp"}, w.Changes()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestConflictsAndRefusalsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		var refuse atomic.Bool
		w.Client.PrependReactor("create", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
			return refuse.Load(), nil, apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "p-tmp", nil)
		})
		w.Run(New())
		reconciletest.Add(w, claimOf(nil))
		w.Settle()
		reconciletest.Add(w, newPod("tmp"))
		w.Settle()
		time.Sleep(time.Hour)
		if diff := cmp.Diff([]string{"Warning FailedBinding ephemeral volume tmp: PVC ns/p-tmp was not created for pod ns/p (pod is not owner)"}, w.Events.List()); diff != "" {
			t.Error(diff)
		}
		refuse.Store(true)
		if err := w.Client.CoreV1().PersistentVolumeClaims("ns").Delete(t.Context(), "p-tmp", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		if events := w.Events.List(); len(events) == 0 || !strings.HasPrefix(events[0], "Warning FailedBinding ephemeral volume tmp: create PVC p-tmp: ") {
			t.Errorf("%q", events)
		}
		refuse.Store(false)
		time.Sleep(10 * time.Minute)
		if _, err := w.Client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), "p-tmp", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	})
}
