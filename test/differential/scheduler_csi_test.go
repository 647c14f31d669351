package differential

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// csiDrivers are of volumes; the first makes them, too.
var csiDrivers = []string{"example.com/disks", "example.com/shares"}

// addDrivers puts CSI drivers on some of the nodes, with limits and capacities, and attaches volumes that no pod uses.
func (w *placement) addDrivers() {
	for _, name := range csiDrivers {
		if w.chance(4) {
			continue
		}
		driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if w.chance(2) {
			driver.Spec.StorageCapacity = new(w.chance(2))
		}
		if w.chance(3) {
			driver.Spec.PreventPodSchedulingIfMissing = new(w.chance(2))
		}
		w.others = append(w.others, driver)
	}
	for i, node := range w.nodes {
		if !w.chance(4) {
			w.others = append(w.others, w.csiNode(node.Name))
		}
		if w.chance(3) {
			w.others = append(w.others, w.attachment(i, node.Name))
		}
	}
	for i := range w.IntN(4) {
		w.others = append(w.others, w.storageCapacity(i))
	}
}

func (w *placement) csiNode(name string) *storagev1.CSINode {
	n := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, driver := range csiDrivers {
		if w.chance(4) {
			continue
		}
		d := storagev1.CSINodeDriver{Name: driver, NodeID: name}
		if !w.chance(3) {
			d.Allocatable = &storagev1.VolumeNodeResources{}
			if !w.chance(5) {
				d.Allocatable.Count = new(int32(w.IntN(3) * w.ease))
			}
		}
		n.Spec.Drivers = append(n.Spec.Drivers, d)
	}
	return n
}

func (w *placement) attachment(i int, node string) *storagev1.VolumeAttachment {
	volume := fmt.Sprint("volume-", w.IntN(placementVolumes+1))
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("attachment-", i)}}
	a.Spec = storagev1.VolumeAttachmentSpec{Attacher: pick(w.generator, csiDrivers...), NodeName: node}
	a.Spec.Source.PersistentVolumeName = &volume
	a.Status.Attached = w.chance(2)
	return a
}

func (w *placement) storageCapacity(i int) *storagev1.CSIStorageCapacity {
	c := &storagev1.CSIStorageCapacity{ObjectMeta: w.meta(fmt.Sprint("capacity-", i)), StorageClassName: fmt.Sprint("class-", w.IntN(3))}
	if !w.chance(6) {
		c.NodeTopology = &metav1.LabelSelector{MatchLabels: w.labels(corev1.LabelTopologyZone)}
	}
	for _, size := range []**resource.Quantity{&c.Capacity, &c.MaximumVolumeSize} {
		if !w.chance(3) {
			*size = new(w.quantity("0", "1Gi", "1500Mi", "10Gi"))
		}
	}
	return c
}
