package scheduler

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func csiDriver(measured, prevents bool) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "csi.example.com"}, Spec: storagev1.CSIDriverSpec{
		StorageCapacity: &measured, PreventPodSchedulingIfMissing: &prevents}}
}

// roomIn is storage of the class late in a zone; an empty largest is not said.
func roomIn(zone, capacity, largest string) *storagev1.CSIStorageCapacity {
	c := &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "room-" + zone}, StorageClassName: "late",
		NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelTopologyZone: zone}}, Capacity: new(resource.MustParse(capacity))}
	if largest != "" {
		c.MaximumVolumeSize = new(resource.MustParse(largest))
	}
	return c
}

// TestStorageCapacity: a volume is made where its driver says that there is room, on the node with the most of it.
func TestStorageCapacity(t *testing.T) {
	unreachable, another := roomIn("z2", "9Gi", ""), roomIn("z2", "9Gi", "")
	unreachable.NodeTopology = nil
	another.StorageClassName = "another"
	sizeless := lateClaim("data", "5Gi")
	sizeless.Spec.Resources.Requests = nil
	for name, c := range map[string]struct {
		objects []runtime.Object
		want    string // the node, or none
	}{
		"room on one":                 {[]runtime.Object{csiDriver(true, false), roomIn("z1", "1Gi", ""), roomIn("z2", "5Gi", "")}, "node-2"},
		"more room on one":            {[]runtime.Object{csiDriver(true, false), roomIn("z1", "6Gi", ""), roomIn("z2", "20Gi", "")}, "node-2"},
		"free, but not for so large":  {[]runtime.Object{csiDriver(true, false), roomIn("z1", "5Gi", ""), roomIn("z2", "9Gi", "4Gi")}, "node-1"},
		"nobody said how much":        {[]runtime.Object{csiDriver(true, false)}, ""},
		"room that no node reaches":   {[]runtime.Object{csiDriver(true, false), unreachable}, ""},
		"room of another class":       {[]runtime.Object{csiDriver(true, false), another}, ""},
		"the driver does not measure": {[]runtime.Object{csiDriver(false, false), testNode("node-1", "z1", "0", "0")}, "node-2"},
		"no CSIDriver":                {[]runtime.Object{testNode("node-1", "z1", "0", "0")}, "node-2"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append(c.objects, lateClass("csi.example.com"), lateClaim("data", "5Gi"))
			objects = append(objects, testNode("node-2", "z2", "2", "8Gi"))
			if !hasNode(c.objects) {
				objects = append(objects, testNode("node-1", "z1", "2", "8Gi"))
			}
			inWorld(t, objects, func(w *world) {
				w.createPod(claiming(testPod("a", "100m", "1Mi"), "data"))
				synctest.Wait()
				if c.want == "" {
					w.wantCondition("a", corev1.PodReasonUnschedulable, "2 node(s) did not have enough free storage")
					return
				}
				w.rest()
				if got := w.claim("data").Annotations["volume.kubernetes.io/selected-node"]; got != c.want {
					t.Errorf("the volume is made for %q, want %s", got, c.want)
				}
			})
		})
	}
	t.Run("a claim without a size", func(t *testing.T) {
		inWorld(t, twoNodes(csiDriver(true, false), lateClass("csi.example.com"), sizeless), func(w *world) {
			w.createPod(claiming(testPod("a", "", ""), "data"))
			w.rest()
			if w.claim("data").Annotations["volume.kubernetes.io/selected-node"] == "" {
				t.Error("it waits for room of no size")
			}
		})
	})
}

func hasNode(objects []runtime.Object) bool {
	for _, o := range objects {
		if _, ok := o.(*corev1.Node); ok {
			return true
		}
	}
	return false
}

// TestRoomThatGrows: a pod that waits is tried again when its driver has more room.
func TestRoomThatGrows(t *testing.T) {
	inWorld(t, twoNodes(csiDriver(true, false), lateClass("csi.example.com"), lateClaim("data", "5Gi"), roomIn("z1", "1Gi", "")), func(w *world) {
		w.createPod(claiming(testPod("a", "", ""), "data"))
		synctest.Wait()
		w.wantCondition("a", corev1.PodReasonUnschedulable, "2 node(s) did not have enough free storage")
		if _, err := w.client.StorageV1().CSIStorageCapacities("kube-system").Update(t.Context(), roomIn("z1", "5Gi", ""), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.rest()
		if got := w.claim("data").Annotations["volume.kubernetes.io/selected-node"]; got != "node-1" {
			t.Errorf("the volume is made for %q", got)
		}
	})
}

// TestMissingDrivers: a pod goes to no node without the driver of its volume, if the driver's CSIDriver says so.
func TestMissingDrivers(t *testing.T) {
	installed := csiNode("node-2", 5)
	for name, c := range map[string]struct {
		objects []runtime.Object
		want    string
	}{
		"installed on one":  {[]runtime.Object{csiDriver(false, true), installed}, "node-2"},
		"installed nowhere": {[]runtime.Object{csiDriver(false, true)}, ""},
		"it may be missing": {[]runtime.Object{csiDriver(false, false), testNode("node-2", "z2", "0", "0")}, "node-1"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append(c.objects, csiVolume("v", "csi.example.com"), volumeClaim("v", "", "v"), testNode("node-1", "z1", "2", "8Gi"))
			if !hasNode(c.objects) {
				objects = append(objects, testNode("node-2", "z2", "2", "8Gi"))
			}
			inWorld(t, objects, func(w *world) {
				w.createPod(claiming(testPod("a", "100m", "1Mi"), "v"))
				synctest.Wait()
				if c.want != "" {
					w.wantNode("a", c.want)
					return
				}
				w.wantCondition("a", corev1.PodReasonUnschedulable, "2 csi.example.com CSI driver is not installed on the node")
				if _, err := w.client.StorageV1().CSINodes().Create(t.Context(), csiNode("node-1", 5), metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				w.rest()
				w.wantNode("a", "node-1")
			})
		})
	}
}
