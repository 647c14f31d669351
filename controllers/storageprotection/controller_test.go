package storageprotection

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

func start(t *testing.T) *reconciletest.World {
	t.Helper()
	w := reconciletest.New(t)
	w.Run(New())
	return w
}

func podWith(claim, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"},
		Spec: corev1.PodSpec{NodeName: node, Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}},
	}
}

func TestAClaimWaitsForItsPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		reconciletest.Add(w, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns"}})
		w.Settle()
		if diff := cmp.Diff([]string{"update persistentvolumeclaims ns/c"}, w.Writes()); diff != "" {
			t.Error(diff)
		}
		reconciletest.Add(w, podWith("c", "node-1"))
		claims := w.Client.CoreV1().PersistentVolumeClaims("ns")
		if err := claims.Delete(t.Context(), "c", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		if c, err := claims.Get(t.Context(), "c", metav1.GetOptions{}); err != nil || !slices.Contains(c.Finalizers, claimFinalizer) {
			t.Errorf("%v, %v", c, err)
		}
		w.Writes()
		time.Sleep(time.Hour)
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("an unchanged world was written to: %v", writes)
		}
		w.RemovePod(podWith("c", "node-1"))
		w.Settle()
		if _, err := claims.Get(t.Context(), "c", metav1.GetOptions{}); err == nil {
			t.Error("it is still there")
		}
	})
}

// A bound claim says since when no pod has used it.
func TestAClaimSaysWhetherItIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		claims := w.Client.CoreV1().PersistentVolumeClaims("ns")
		says := func() (text string, since time.Time) {
			w.Settle()
			claim, err := claims.Get(t.Context(), "c", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range claim.Status.Conditions {
				text, since = text+string(c.Type)+"="+string(c.Status)+" "+c.Reason, c.LastTransitionTime.Time
			}
			return text, since
		}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", Finalizers: []string{claimFinalizer}}}
		claim = reconciletest.Add(w, claim)
		if got, _ := says(); got != "" {
			t.Errorf("not bound: %s", got)
		}
		claim.Status.Phase = corev1.ClaimBound
		if _, err := claims.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		const free, used = "Unused=True NoPodsUsingPVC", "Unused=False PodUsingPVC"
		got, first := says()
		if got != free {
			t.Errorf("bound: %s", got)
		}
		time.Sleep(time.Hour)
		pod := reconciletest.Add(w, podWith("c", ""))
		got, second := says()
		if got != used || second.Sub(first) < time.Hour {
			t.Errorf("with a pod: %s since %v, unused since %v", got, second, first)
		}
		w.Writes()
		time.Sleep(time.Hour)
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("an unchanged world was written to: %v", writes)
		}
		pod.Status.Phase = corev1.PodSucceeded
		if _, err := w.Client.CoreV1().Pods("ns").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if got, _ := says(); got != free {
			t.Errorf("the pod has ended: %s", got)
		}
		w.RemovePod(pod)
		reconciletest.Add(w, podWith("d", "n"))
		if got, _ := says(); got != free {
			t.Errorf("another's pod: %s", got)
		}
	})
}

func TestVolumesAndClassesAreProtected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		reconciletest.Add(w, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "free"}})
		reconciletest.Add(w, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "bound"}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}})
		reconciletest.Add(w, &storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}})
		reconciletest.Add(w, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeAttributesClassName: new("fast")}})
		w.Settle()
		volumes, classes, claims := w.Client.CoreV1().PersistentVolumes(), w.Client.StorageV1().VolumeAttributesClasses(), w.Client.CoreV1().PersistentVolumeClaims("ns")
		for _, name := range []string{"free", "bound"} {
			if err := volumes.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := classes.Delete(t.Context(), "fast", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		if _, err := volumes.Get(t.Context(), "free", metav1.GetOptions{}); err == nil {
			t.Error("the free volume is still there")
		}
		if _, err := volumes.Get(t.Context(), "bound", metav1.GetOptions{}); err != nil {
			t.Errorf("bound: %v", err)
		}
		if _, err := classes.Get(t.Context(), "fast", metav1.GetOptions{}); err != nil {
			t.Errorf("class in use: %v", err)
		}
		if err := claims.Delete(t.Context(), "c", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		if _, err := classes.Get(t.Context(), "fast", metav1.GetOptions{}); err == nil {
			t.Error("the class is still there")
		}
	})
}

func TestWhoUsesAClaim(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns"}}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"on a node": {podWith("c", "n"), true},
		"nowhere":   {podWith("c", ""), false},
		"another's": {podWith("d", "n"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := uses(c.pod, claim); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// A write that is refused, for whatever reason, is tried again.
func TestRefusedWritesAreTriedAgain(t *testing.T) {
	for name, outcome := range map[string]reconciletest.Outcome{"conflict": reconciletest.Conflicted, "error": reconciletest.Refused} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := start(t)
				w.Intercept(func(string) reconciletest.Outcome {
					w.Intercept(nil)
					return outcome
				})
				claim := reconciletest.Add(w, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns"}})
				w.Settle()
				c, err := w.Client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), claim.Name, metav1.GetOptions{})
				if err != nil || !slices.Contains(c.Finalizers, claimFinalizer) {
					t.Errorf("%v, %v", c.Finalizers, err)
				}
			})
		})
	}
}
