package scheduler

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func csiNode(name string, count int32) *storagev1.CSINode {
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: "csi.example.com", NodeID: name, Allocatable: &storagev1.VolumeNodeResources{Count: &count}}, {Name: "boundless", NodeID: name},
	}}}
}

func csiVolume(name, driver string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "h-" + name}}}}
}

func attachedTo(node, volume string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: volume + "-" + node}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: "csi.example.com", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}}}
}

// TestVolumeLimits: a node takes as many volumes of a driver as its CSINode says.
func TestVolumeLimits(t *testing.T) {
	v, other, free := csiVolume("v", "csi.example.com"), csiVolume("w", "csi.example.com"), csiVolume("x", "boundless")
	claims := []runtime.Object{v, other, free, volumeClaim("v", "", "v"), volumeClaim("w", "", "w"), volumeClaim("x", "", "x"), testNode("node-1", "z", "2", "8Gi")}
	running := func(claim string) *corev1.Pod { return bound(claiming(testPod("b", "", ""), claim), "node-1") }
	ephemeral := testPod("a", "", "")
	ephemeral.Spec.Volumes = []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	made := volumeClaim("a-tmp", "late", "")
	made.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(ephemeral, corev1.SchemeGroupVersion.WithKind("Pod"))}
	for name, c := range map[string]struct {
		pod     *corev1.Pod
		objects []runtime.Object
		fits    bool
	}{
		"no CSINode":                  {claiming(testPod("a", "", ""), "v"), nil, true},
		"room for one":                {claiming(testPod("a", "", ""), "v"), []runtime.Object{csiNode("node-1", 1)}, true},
		"room for none":               {claiming(testPod("a", "", ""), "v"), []runtime.Object{csiNode("node-1", 0)}, false},
		"room for one of two":         {claiming(claiming(testPod("a", "", ""), "v"), "w"), []runtime.Object{csiNode("node-1", 1)}, false},
		"another pod has one":         {claiming(testPod("a", "", ""), "v"), []runtime.Object{csiNode("node-1", 1), running("w")}, false},
		"another pod has the same":    {claiming(testPod("a", "", ""), "v"), []runtime.Object{csiNode("node-1", 1), running("v")}, true},
		"another is attached":         {claiming(testPod("a", "", ""), "v"), []runtime.Object{csiNode("node-1", 1), attachedTo("node-1", "w")}, false},
		"another is attached, used":   {claiming(testPod("a", "", ""), "v"), []runtime.Object{csiNode("node-1", 2), attachedTo("node-1", "w"), running("w")}, true},
		"attached elsewhere":          {claiming(testPod("a", "", ""), "v"), []runtime.Object{csiNode("node-1", 1), attachedTo("node-2", "w")}, true},
		"a driver without a limit":    {claiming(testPod("a", "", ""), "x"), []runtime.Object{csiNode("node-1", 0)}, true},
		"a pod without volumes":       {testPod("a", "", ""), []runtime.Object{csiNode("node-1", 0)}, true},
		"a volume that will be made":  {ephemeral, []runtime.Object{csiNode("node-1", 0), made, lateClass("csi.example.com")}, false},
		"a limit of another's driver": {claiming(testPod("a", "", ""), "v"), []runtime.Object{csiNode("node-2", 0)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, append(c.objects, claims...), func(w *world) {
				w.createPod(c.pod)
				synctest.Wait()
				if c.fits {
					w.wantNode("a", "node-1")
				} else {
					w.wantCondition("a", corev1.PodReasonUnschedulable, "1 node(s) exceed max volume count")
				}
			})
		})
	}
}

// TestALimitThatGrows: pods that wait are tried again, and see what has changed.
func TestALimitThatGrows(t *testing.T) {
	for name, change := range map[string]func(w *world) error{
		"CSINode": func(w *world) error {
			_, err := w.client.StorageV1().CSINodes().Update(w.t.Context(), csiNode("node-1", 2), metav1.UpdateOptions{})
			return err
		},
		"VolumeAttachment": func(w *world) error {
			return w.client.StorageV1().VolumeAttachments().Delete(w.t.Context(), "w-node-1", metav1.DeleteOptions{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{
				csiVolume("v", "csi.example.com"), csiVolume("w", "csi.example.com"), volumeClaim("v", "", "v"),
				testNode("node-1", "z", "2", "8Gi"), csiNode("node-1", 1), attachedTo("node-1", "w"),
			}
			inWorld(t, objects, func(w *world) {
				w.createPod(claiming(testPod("a", "", ""), "v"))
				synctest.Wait()
				w.wantCondition("a", corev1.PodReasonUnschedulable, "1 node(s) exceed max volume count")
				if err := change(w); err != nil {
					t.Fatal(err)
				}
				w.rest()
				w.wantNode("a", "node-1")
			})
		})
	}
}
