package scheduler

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/storage/volume"
)

// lateClass binds claims when their pods have nodes; its provisioner serves the given zones, or all.
func lateClass(provisioner string, zones ...string) *storagev1.StorageClass {
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Provisioner: provisioner, VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer)}
	if len(zones) > 0 {
		c.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: zones}}}}
	}
	return c
}

// freeOn is a free volume of the class late that only one node reaches.
func freeOn(name, node, size string) *corev1.PersistentVolume {
	v := volumeOn(name, node)
	v.Spec.StorageClassName, v.Spec.Capacity = "late", resources("storage", size)
	v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	v.Status.Phase = corev1.VolumeAvailable
	return v
}

func lateClaim(name, size string) *corev1.PersistentVolumeClaim {
	c := volumeClaim(name, "late", "")
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = resources("storage", size)
	return c
}

func twoNodes(objects ...runtime.Object) []runtime.Object {
	return append(objects, testNode("node-1", "z1", "2", "8Gi"), testNode("node-2", "z2", "2", "8Gi"))
}

func (w *world) claim(name string) *corev1.PersistentVolumeClaim {
	w.t.Helper()
	c, err := w.client.CoreV1().PersistentVolumeClaims("default").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) volume(name string) *corev1.PersistentVolume {
	w.t.Helper()
	v, err := w.client.CoreV1().PersistentVolumes().Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// finish plays the controller that binds.
func (w *world) finish(claim, to string) {
	w.t.Helper()
	c := w.claim(claim)
	c.Spec.VolumeName = to
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, volume.AnnBindCompleted, "yes")
	if _, err := w.client.CoreV1().PersistentVolumeClaims("default").Update(w.t.Context(), c, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.rest()
}

// rest is longer than it takes to look again.
func (w *world) rest() {
	time.Sleep(2 * time.Second)
	synctest.Wait()
}

// TestAVolumeThatExists: the pod goes where its claim finds a volume, and is bound when the claim is.
func TestAVolumeThatExists(t *testing.T) {
	objects := twoNodes(lateClass(volume.NotSupportedProvisioner), lateClaim("data", "5Gi"), freeOn("small", "node-1", "1Gi"), freeOn("large", "node-2", "9Gi"), freeOn("fit", "node-2", "6Gi"))
	inWorld(t, objects, func(w *world) {
		w.createPod(claiming(testPod("a", "", ""), "data"))
		synctest.Wait()
		v := w.volume("fit")
		if v.Spec.ClaimRef == nil || v.Spec.ClaimRef.UID != "uid-of-data" || v.Annotations[volume.AnnBoundByController] != "yes" {
			t.Fatalf("claimRef %v, %v", v.Spec.ClaimRef, v.Annotations)
		}
		w.rest()
		w.wantNode("a", "")
		w.finish("data", "fit")
		w.wantNode("a", "node-2")
	})
}

// TestAVolumeThatIsMade: the claim tells its provisioner the node, which is in a zone that the provisioner serves.
func TestAVolumeThatIsMade(t *testing.T) {
	inWorld(t, twoNodes(lateClass("csi.example.com", "z2"), lateClaim("data", "5Gi")), func(w *world) {
		w.createPod(claiming(testPod("a", "", ""), "data"))
		synctest.Wait()
		if got := w.claim("data").Annotations[volume.AnnSelectedNode]; got != "node-2" {
			t.Fatalf("selected %q", got)
		}
		w.createPod(claiming(testPod("b", "", ""), "data"))
		w.rest()
		w.wantNode("a", "")
		v := volumeOn("made", "node-2")
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "data", UID: "uid-of-data"}
		if _, err := w.client.CoreV1().PersistentVolumes().Create(t.Context(), v, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.finish("data", "made")
		w.wantNode("a", "node-2")
		w.wantNode("b", "node-2")
	})
}

// TestTheNodeIsShownWhileVolumesAreMade, and no longer when they could not be made there.
func TestTheNodeIsShownWhileVolumesAreMade(t *testing.T) {
	inWorld(t, twoNodes(lateClass("csi.example.com", "z2"), lateClaim("data", "5Gi")), func(w *world) {
		w.createPod(claiming(testPod("a", "", ""), "data"))
		synctest.Wait()
		if got := w.pod("a").Status.NominatedNodeName; got != "node-2" {
			t.Errorf("nominated to %q while the volume is made, want node-2", got)
		}
		c := w.claim("data")
		c.Annotations = nil // the provisioner gives up
		c.ResourceVersion += "1"
		if _, err := w.client.CoreV1().PersistentVolumeClaims("default").Update(t.Context(), c, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.rest()
		if !slices.ContainsFunc(w.client.Actions(), func(action clienttesting.Action) bool {
			patch, ok := action.(clienttesting.PatchAction)
			return ok && strings.Contains(string(patch.GetPatch()), `"nominatedNodeName":null`)
		}) {
			t.Error("still nominated after the volume could not be made")
		}
	})
}

// TestOneVolumeForTwoClaims: the second pod waits, and is placed when there is another volume.
func TestOneVolumeForTwoClaims(t *testing.T) {
	inWorld(t, twoNodes(lateClass(""), lateClaim("one", "5Gi"), lateClaim("two", "5Gi"), freeOn("v1", "node-1", "9Gi")), func(w *world) {
		w.createPod(claiming(testPod("one", "", ""), "one"))
		w.createPod(claiming(testPod("two", "", ""), "two"))
		synctest.Wait()
		first, second := "one", "two"
		if w.volume("v1").Spec.ClaimRef.Name == "two" {
			first, second = second, first
		}
		w.wantCondition(second, corev1.PodReasonUnschedulable, "2 node(s) didn't find available persistent volumes to bind")
		w.finish(first, "v1")
		w.wantNode(first, "node-1")
		if _, err := w.client.CoreV1().PersistentVolumes().Create(t.Context(), freeOn("v2", "node-2", "9Gi"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.rest()
		w.finish(second, "v2")
		w.wantNode(second, "node-2")
	})
}

// TestProvisioningThatFails: a provisioner that takes the node back, or takes too long, makes the pod try again.
func TestProvisioningThatFails(t *testing.T) {
	inWorld(t, twoNodes(lateClass("csi.example.com"), lateClaim("data", "5Gi")), func(w *world) {
		w.createPod(claiming(testPod("a", "", ""), "data"))
		synctest.Wait()
		for range 2 {
			c := w.claim("data")
			if c.Annotations[volume.AnnSelectedNode] == "" {
				t.Fatal("no node is selected")
			}
			c.Annotations = nil
			c.ResourceVersion = c.ResourceVersion + "1"
			if _, err := w.client.CoreV1().PersistentVolumeClaims("default").Update(t.Context(), c, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Second)
			w.wantCondition("a", corev1.PodReasonSchedulerError, `running PreBind plugin "VolumeBinding": binding volumes: claim data: another node was selected`)
		}
		time.Sleep(volumeWaitMax + time.Minute)
		w.wantCondition("a", corev1.PodReasonSchedulerError, "timed out waiting for volumes to be bound")
	})
}

// TestAPodThatGoesWhileItWaits gives back what was promised to it.
func TestAPodThatGoesWhileItWaits(t *testing.T) {
	inWorld(t, twoNodes(lateClass("csi.example.com"), lateClaim("data", "5Gi")), func(w *world) {
		w.createPod(claiming(testPod("a", "2", ""), "data"))
		synctest.Wait()
		node := w.claim("data").Annotations[volume.AnnSelectedNode]
		if err := w.client.CoreV1().Pods("default").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.rest()
		w.createPod(claiming(testPod("b", "2", ""), "data"))
		w.rest()
		v := volumeOn("v", node)
		if _, err := w.client.CoreV1().PersistentVolumes().Create(t.Context(), v, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.finish("data", "v")
		time.Sleep(time.Minute)
		w.wantNode("b", node)
	})
}

// TestOnePodOnly: a ReadWriteOncePod claim is used by one pod at a time, on whatever node.
func TestOnePodOnly(t *testing.T) {
	c := volumeClaim("data", "", "v")
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	inWorld(t, twoNodes(c, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}), func(w *world) {
		w.createPod(claiming(testPod("a", "", ""), "data"))
		synctest.Wait()
		w.createPod(claiming(testPod("b", "", ""), "data"))
		synctest.Wait()
		if w.pod("a").Spec.NodeName == "" {
			t.Fatal("the first pod is not placed")
		}
		w.wantCondition("b", corev1.PodReasonUnschedulable, "2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod")
		if err := w.client.CoreV1().Pods("default").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if synctest.Wait(); w.pod("b").Spec.NodeName == "" {
			t.Error("the second pod is not placed")
		}
	})
}
