package storageroom

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	storagelisters "k8s.io/client-go/listers/storage/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// Rooms know how much room drivers have for volumes, by CSIStorageCapacities (KEP-1472).
type Rooms struct {
	Drivers    storagelisters.CSIDriverLister
	Capacities storagelisters.CSIStorageCapacityLister
}

// Measure tells a late claim where there is room for it, if the driver of its class says how much it has.
func (r Rooms) Measure(late *plugin.LateClaim) error {
	size, ok := late.Claim.Spec.Resources.Requests[corev1.ResourceStorage]
	driver, err := r.Drivers.Get(late.Class.Provisioner)
	switch {
	case !ok || apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case driver.Spec.StorageCapacity == nil || !*driver.Spec.StorageCapacity:
		return nil
	}
	late.Measured = true
	all, err := r.Capacities.List(labels.Everything())
	if err != nil {
		return err
	}
	for _, capacity := range all {
		if capacity.StorageClassName == late.Class.Name && largestVolume(capacity) >= size.Value() {
			if room := roomOf(capacity); room != nil {
				late.Rooms = append(late.Rooms, room)
			}
		}
	}
	slices.SortFunc(late.Rooms, func(a, b *plugin.StorageRoom) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// largestVolume is the largest volume that can be made, in bytes. The maximum size is more exact than what is free.
func largestVolume(capacity *storagev1.CSIStorageCapacity) int64 {
	switch {
	case capacity.MaximumVolumeSize != nil:
		return capacity.MaximumVolumeSize.Value()
	case capacity.Capacity != nil:
		return capacity.Capacity.Value()
	}
	return -1
}

// roomOf is the room as plugins know it; nil if no node reaches it.
func roomOf(capacity *storagev1.CSIStorageCapacity) *plugin.StorageRoom {
	nodes, err := metav1.LabelSelectorAsSelector(capacity.NodeTopology)
	if capacity.NodeTopology == nil || err != nil {
		return nil
	}
	room := &plugin.StorageRoom{Name: fmt.Sprintf("%s/%s@%s", capacity.Namespace, capacity.Name, capacity.ResourceVersion), Nodes: nodes}
	if capacity.Capacity != nil {
		room.Capacity = capacity.Capacity.Value()
	}
	return room
}
