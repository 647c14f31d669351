package volumeattach

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

const once, many = corev1.ReadWriteOnce, corev1.ReadWriteMany

func TestAVolumeComesAndGoes(t *testing.T) {
	inWorld(t, func(w *world) {
		reconciletest.Add(w.World, newNode("a"))
		w.addVolume("v", once)
		pod := newPod("p", "a", "v")
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "inline", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: testDriver}}})
		reconciletest.Add(w.World, pod)
		w.want("v@a")
		w.reported("a")
		made, err := w.Client.StorageV1().VolumeAttachments().Get(t.Context(), nameOn("v", "a"), metav1.GetOptions{})
		w.must(err)
		if diff := cmp.Diff(attachmentOf("v", "a").Spec, made.Spec); diff != "" {
			t.Error(diff)
		}
		w.attacher()
		w.want("v@a+")
		w.reported("a", "v")
		w.heard(`Normal SuccessfulAttachVolume AttachVolume.Attach succeeded for volume "v" `)
		w.mounts("a", "v")
		w.quiet()

		w.removePod("p")
		w.want("v@a+") // it is still mounted
		w.reported("a", "v")
		w.quiet()
		w.mounts("a")
		w.want("v@a+-")
		w.reported("a")
		if diff := cmp.Diff([]string{"patch nodes/status /a", "delete volumeattachments /" + nameOn("v", "a")}, without(w.Changes(), "update")); diff != "" {
			t.Error(diff)
		}
		w.attacher()
		w.want("")
		w.quiet()
	})
}

func TestOneNodeAtATime(t *testing.T) {
	inWorld(t, func(w *world) {
		reconciletest.Add(w.World, newNode("a"))
		reconciletest.Add(w.World, newNode("b"))
		w.addVolume("v", once)
		w.addVolume("shared", many)
		reconciletest.Add(w.World, newPod("p", "a", "v", "shared"))
		w.Settle()
		w.attacher()
		w.Settle()
		w.mounts("a", "v", "shared")
		w.Events.List()
		reconciletest.Add(w.World, newPod("q", "b", "v", "shared"))
		w.want("shared@a+ shared@b v@a+")
		w.heard(`Warning FailedAttachVolume Waiting for detach for volume "v" Volume is already used by pod(s) p`)
		w.attacher()
		w.quiet()
		w.removePod("p")
		w.Settle()
		w.mounts("a")
		w.want("shared@a+- shared@b+ v@a+-")
		w.attacher()
		w.want("shared@b+ v@b")
	})
}

func TestNobodyIsLeftOnTheOtherNode(t *testing.T) {
	inWorld(t, func(w *world) {
		reconciletest.Add(w.World, newNode("a"))
		reconciletest.Add(w.World, newNode("b"))
		w.addVolume("v", corev1.ReadWriteOncePod)
		reconciletest.Add(w.World, newPod("p", "a", "v"))
		w.Settle()
		w.attacher()
		w.Settle()
		w.mounts("a", "v")
		w.removePod("p")
		w.Events.List()
		reconciletest.Add(w.World, newPod("q", "b", "v"))
		w.want("v@a+")
		w.heard(`Warning FailedAttachVolume Waiting for detach for volume "v" ` +
			"Volume is already exclusively attached to one node, waiting on detach before it can be attached to another node")
	})
}

func TestNodesThatDoNotAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(w *world) // before the pod goes
		soon    string         // at once
		late    string         // after maxWaitForUnmount
	}{
		"healthy": {func(*world) {}, "v@a+", "v@a+"},
		"unready": {func(w *world) { w.changeStatus("a", unready) }, "v@a+", "v@a+-"},
		"out of service": {func(w *world) {
			w.changeNode("a", func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
			})
		}, "v@a+-", "v@a+-"},
		"gone": {func(w *world) { w.must(w.Client.CoreV1().Nodes().Delete(w.t.Context(), "a", metav1.DeleteOptions{})) }, "v@a+", "v@a+-"},
		"gone without mounts": {func(w *world) {
			w.mounts("a")
			w.Settle()
			w.must(w.Client.CoreV1().Nodes().Delete(w.t.Context(), "a", metav1.DeleteOptions{}))
		}, "v@a+-", "v@a+-"},
		"does not leave it to us": {func(w *world) {
			w.changeNode("a", func(n *corev1.Node) { n.Annotations = nil })
			w.mounts("a")
		}, "v@a+", "v@a+"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				reconciletest.Add(w.World, newNode("a"))
				w.addVolume("v", once)
				reconciletest.Add(w.World, newPod("p", "a", "v"))
				w.Settle()
				w.attacher()
				w.Settle()
				w.mounts("a", "v")
				w.Settle()
				c.happens(w)
				w.want("v@a+")
				w.removePod("p")
				w.want(c.soon)
				w.pass(maxWaitForUnmount - time.Second)
				w.want(c.soon)
				w.pass(2 * time.Second)
				w.want(c.late)
			})
		})
	}
}

func TestDriversThatNeedNoAttaching(t *testing.T) {
	inWorld(t, func(w *world) {
		driver := reconciletest.Add(w.World, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: testDriver}, Spec: storagev1.CSIDriverSpec{AttachRequired: new(false)}})
		reconciletest.Add(w.World, newNode("a"))
		w.addVolume("v", once)
		reconciletest.Add(w.World, newPod("p", "a", "v"))
		w.want("")
		driver.Spec.AttachRequired = new(true)
		_, err := w.Client.StorageV1().CSIDrivers().Update(t.Context(), driver, metav1.UpdateOptions{})
		w.must(err)
		w.want("v@a")
	})
}

func TestDriversThatFail(t *testing.T) {
	inWorld(t, func(w *world) {
		reconciletest.Add(w.World, newNode("a"))
		w.addVolume("v", once)
		reconciletest.Add(w.World, newPod("p", "a", "v"))
		w.want("v@a")
		w.pass(attachTimeout + 2*time.Second)
		w.heard(`Warning FailedAttachVolume AttachVolume.Attach failed for volume "v" : ` +
			"timed out waiting for external-attacher of csi.example.com CSI driver to attach volume h-v")
		a, err := w.Client.StorageV1().VolumeAttachments().Get(t.Context(), nameOn("v", "a"), metav1.GetOptions{})
		w.must(err)
		a.Status.AttachError = &storagev1.VolumeError{Message: "no disk"}
		_, err = w.Client.StorageV1().VolumeAttachments().UpdateStatus(t.Context(), a, metav1.UpdateOptions{})
		w.must(err)
		w.Settle()
		w.heard(`Warning FailedAttachVolume AttachVolume.Attach failed for volume "v" : no disk`)
		w.reported("a")
		w.quiet()
	})
}

func TestWhatIsSomebodyElses(t *testing.T) {
	inWorld(t, func(w *world) {
		reconciletest.Add(w.World, newNode("a"))
		reconciletest.Add(w.World, newVolume("v", once))
		other := attachmentOf("v", "a")
		other.Name = "mine"
		reconciletest.Add(w.World, other)
		w.quiet()
		w.want("v@a+")
		w.reported("a")
	})
}

// TestTheClaimIsRemovedByForce: a running pod keeps its volume.
func TestTheClaimIsRemovedByForce(t *testing.T) {
	inWorld(t, func(w *world) {
		reconciletest.Add(w.World, newNode("a"))
		w.addVolume("v", once)
		reconciletest.Add(w.World, newPod("p", "a", "v"))
		w.Settle()
		w.attacher()
		w.Settle()
		w.must(w.Client.CoreV1().PersistentVolumeClaims("ns").Delete(t.Context(), "v", metav1.DeleteOptions{}))
		w.want("v@a+")
		w.reported("a", "v")
		w.removePod("p")
		w.want("v@a+-")
	})
}

// TestTheStatusIsWrittenFirst: what the node still lists is not detached.
func TestTheStatusIsWrittenFirst(t *testing.T) {
	inWorld(t, func(w *world) {
		reconciletest.Add(w.World, newNode("a"))
		w.addVolume("v", once)
		reconciletest.Add(w.World, newPod("p", "a", "v"))
		w.Settle()
		w.attacher()
		w.Settle()
		var fails atomic.Bool
		fails.Store(true)
		w.Client.PrependReactor("patch", "nodes", func(ktesting.Action) (bool, runtime.Object, error) { return fails.Load(), nil, errors.New("no") })
		w.removePod("p")
		w.want("v@a+")
		fails.Store(false)
		w.pass(10 * time.Minute)
		w.want("v@a+-")
	})
}

func without(writes []string, prefix string) []string {
	var kept []string
	for _, x := range writes {
		if len(x) < len(prefix) || x[:len(prefix)] != prefix {
			kept = append(kept, x)
		}
	}
	return kept
}
