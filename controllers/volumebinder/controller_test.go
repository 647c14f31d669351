package volumebinder

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// world is a small cluster with the controller.
type world struct {
	*reconciletest.World
	t *testing.T
}

func inWorld(t *testing.T, f func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{reconciletest.New(t), t}
		w.Run(New())
		f(w)
	})
}

// fresh is a volume that no controller has seen.
func fresh(name, capacity string, changes ...volumeChange) *corev1.PersistentVolume {
	return newVolume(name, capacity, append(changes, inStatus(corev1.VolumePending))...)
}

func (w *world) claim(name string) *corev1.PersistentVolumeClaim {
	w.t.Helper()
	c, err := w.Client.CoreV1().PersistentVolumeClaims("ns").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) volume(name string) *corev1.PersistentVolume {
	w.t.Helper()
	v, err := w.Client.CoreV1().PersistentVolumes().Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// state is how a claim stands: its phase and volume.
func (w *world) state(claim string) string {
	w.t.Helper()
	c := w.claim(claim)
	return strings.TrimSpace(string(c.Status.Phase) + " " + c.Spec.VolumeName)
}

// want settles and compares states, given as "claim: phase volume" and "volume: phase".
func (w *world) want(claim, state, v, phase string) {
	w.t.Helper()
	w.Settle()
	if got := w.state(claim); got != state {
		w.t.Errorf("claim %s is %q, want %q", claim, got, state)
	}
	if got := w.volume(v).Status.Phase; string(got) != phase {
		w.t.Errorf("volume %s is %s, want %s", v, got, phase)
	}
}

func TestBindingIsFourWritesInOrder(t *testing.T) {
	inWorld(t, func(w *world) {
		reconciletest.Add(w.World, fresh("v", "9Gi"))
		w.Settle()
		w.Writes()
		reconciletest.Add(w.World, newClaim("c"))
		w.want("c", "Bound v", "v", "Bound")
		writes := []string{
			"update persistentvolumes /v", "update persistentvolumes/status /v",
			"update persistentvolumeclaims ns/c", "update persistentvolumeclaims/status ns/c",
		}
		if diff := cmp.Diff(writes, w.Changes()); diff != "" {
			t.Error(diff)
		}
		c, v := w.claim("c"), w.volume("v")
		if c.Annotations[volume.AnnBindCompleted] != "yes" || c.Annotations[volume.AnnBoundByController] != "yes" || v.Annotations[volume.AnnBoundByController] != "yes" {
			t.Errorf("annotations: %v, %v", c.Annotations, v.Annotations)
		}
		if ref := v.Spec.ClaimRef; ref == nil || ref.UID != c.UID || ref.Kind != "PersistentVolumeClaim" || ref.Namespace != "ns" {
			t.Errorf("claimRef %v", ref)
		}
		time.Sleep(time.Hour)
		if writes, events := w.Writes(), w.Events.List(); len(writes)+len(events) > 0 {
			t.Errorf("nothing has changed, but there is %v %v", writes, events)
		}
	})
}

func TestWhatChangesLater(t *testing.T) {
	inWorld(t, func(w *world) {
		reconciletest.Add(w.World, newClaim("c"))
		reconciletest.Add(w.World, newClaim("named", ofVolume("w")))
		w.Settle()
		if diff := cmp.Diff([]string{"Normal FailedBinding no persistent volumes available for this claim and no storage class is set"}, w.Events.List()); diff != "" {
			t.Error(diff)
		}
		reconciletest.Add(w.World, fresh("v", "9Gi"))
		w.want("c", "Bound v", "v", "Bound")
		reconciletest.Add(w.World, fresh("w", "9Gi"))
		w.want("named", "Bound w", "w", "Bound")
		if err := w.Client.CoreV1().PersistentVolumes().Delete(t.Context(), "w", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := w.Client.CoreV1().PersistentVolumeClaims("ns").Delete(t.Context(), "c", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.want("named", "Lost w", "v", "Released")
		if got := w.Events.List(); len(got) != 1 || !strings.HasPrefix(got[0], "Warning ClaimLost ") {
			t.Errorf("%v", got)
		}
		reconciletest.Add(w.World, fresh("w", "9Gi"))
		w.want("named", "Bound w", "w", "Bound")
		reconciletest.Add(w.World, newClaim("c", func(c *corev1.PersistentVolumeClaim) { c.UID = "uid-second" }))
		w.want("c", "Pending", "v", "Released")
	})
}

func TestReclaiming(t *testing.T) {
	inWorld(t, func(w *world) {
		for name, policy := range map[string]corev1.PersistentVolumeReclaimPolicy{
			"kept": corev1.PersistentVolumeReclaimRetain, "recycled": corev1.PersistentVolumeReclaimRecycle,
			"deleted": corev1.PersistentVolumeReclaimDelete, "made": corev1.PersistentVolumeReclaimDelete,
		} {
			v := fresh(name, "9Gi", referring("gone", "uid-gone"))
			v.Spec.PersistentVolumeReclaimPolicy = policy
			if name == "made" {
				annotated(volume.AnnDynamicallyProvisioned, "csi.example.com")(v)
			}
			reconciletest.Add(w.World, v)
		}
		w.Settle()
		got := map[string]string{}
		for _, name := range []string{"kept", "recycled", "deleted", "made"} {
			v := w.volume(name)
			got[name] = string(v.Status.Phase) + " " + v.Status.Message
		}
		want := map[string]string{
			"kept": "Released ", "made": "Released ", "recycled": "Failed No recycler plugin found for the volume!",
			"deleted": `Failed error getting deleter volume plugin for volume "deleted": no deletable volume plugin matched`,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if events := w.Events.List(); len(events) != 2 {
			t.Errorf("%v", events)
		}
	})
}

func TestProvisioningAndDefaultClass(t *testing.T) {
	inWorld(t, func(w *world) {
		c := newClaim("c", withoutClass)
		reconciletest.Add(w.World, c)
		w.Settle()
		class := newClass("fast", "csi.example.com", storagev1.VolumeBindingImmediate)
		class.Annotations = map[string]string{defaultAnnotations[0]: "true"}
		reconciletest.Add(w.World, class)
		w.Settle()
		got := w.claim("c")
		if valueOf(got.Spec.StorageClassName) != "fast" || got.Annotations[volume.AnnStorageProvisioner] != "csi.example.com" {
			t.Fatalf("%v %v", got.Spec, got.Annotations)
		}
		if events := w.Events.List(); len(events) != 2 || !strings.HasPrefix(events[1], "Normal ExternalProvisioning Waiting for a volume to be created either by the external provisioner 'csi.example.com' or") {
			t.Errorf("%q", events)
		}
		made := fresh("pvc-1", "5Gi", inClass("fast"), annotated(volume.AnnDynamicallyProvisioned, "csi.example.com"), referring("c", string(c.UID)))
		made.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		reconciletest.Add(w.World, made)
		w.want("c", "Bound pvc-1", "pvc-1", "Bound")
		if w.volume("pvc-1").Annotations[volume.AnnBoundByController] != "" {
			t.Error("the provisioner's reference is taken for the controller's")
		}
	})
}

func TestWaitingForTheFirstConsumer(t *testing.T) {
	inWorld(t, func(w *world) {
		reconciletest.Add(w.World, newClass("late", "csi.example.com", storagev1.VolumeBindingWaitForFirstConsumer))
		w.Settle() // a claim whose class is not known yet does not wait, as upstream
		reconciletest.Add(w.World, newClaim("c", ofClass("late")))
		reconciletest.Add(w.World, fresh("v", "9Gi", inClass("late")))
		w.want("c", "Pending", "v", "Available")
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}}}}
		reconciletest.Add(w.World, pod)
		w.want("c", "Pending", "v", "Available")
		want := []string{
			"Normal WaitForFirstConsumer waiting for first consumer to be created before binding",
			"Normal WaitForPodScheduled waiting for pod p to be scheduled",
		}
		if diff := cmp.Diff(want, w.Events.List()); diff != "" {
			t.Error(diff)
		}
		v := w.volume("v")
		referring("c", "uid-c")(v) // as the scheduler does
		annotated(volume.AnnBoundByController, "yes")(v)
		if _, err := w.Client.CoreV1().PersistentVolumes().Update(t.Context(), v, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.want("c", "Bound v", "v", "Bound")
	})
}
