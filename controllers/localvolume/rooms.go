package localvolume

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/internal/localvolume"
)

// managedBy labels the CSIStorageCapacities that are ours, as those of an external provisioner are labelled.
const managedBy = "csi.storage.k8s.io/managed-by"

func (c *controller) roomSources() []reconcile.Source {
	return []reconcile.Source{
		reconcile.Changes(c.nodes, nodesWithOtherRoom), reconcile.Self(c.csiNodes),
		reconcile.Changes(c.volumes, nodesOfVolume), reconcile.Changes(c.classes, c.allNodes), reconcile.Filled(c.rooms),
	}
}

// nodesWithOtherRoom leaves out heartbeats.
func nodesWithOtherRoom(before, after metav1.Object) []reconcile.Key {
	was, had := before.(*corev1.Node)
	is, has := after.(*corev1.Node)
	switch {
	case !has:
		return nil // garbage collection takes its capacities
	case had && totalOf(was) == totalOf(is) && was.Labels[corev1.LabelHostname] == is.Labels[corev1.LabelHostname]:
		return nil
	}
	return []reconcile.Key{reconcile.KeyOf(is)}
}

func nodesOfVolume(before, after metav1.Object) []reconcile.Key {
	for _, o := range []metav1.Object{after, before} {
		if v, ok := o.(*corev1.PersistentVolume); ok && isOurs(v) {
			return []reconcile.Key{{Name: nodeOf(v)}}
		}
	}
	return nil
}

func (c *controller) allNodes(_, _ metav1.Object) []reconcile.Key {
	nodes, err := c.nodes.List("", labels.Everything())
	if err != nil {
		c.env.Logger.Error("listing nodes failed", "err", err) // the cache is declared, so it is there
	}
	var keys []reconcile.Key
	for _, node := range nodes {
		keys = append(keys, reconcile.KeyOf(node))
	}
	return keys
}

// reconcileRoom tells the scheduler how much room a node has.
func (c *controller) reconcileRoom(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	node := found(c.nodes, key.Name)
	if node == nil {
		return 0, nil
	}
	free, err := c.ledger.free(node.Name, totalOf(node), c.allVolumes)
	if err != nil {
		return 0, err
	}
	classes, err := c.classes.List("", labels.Everything())
	if err != nil {
		return 0, err
	}
	mine, err := c.writtenRooms.List(func() ([]*storagev1.CSIStorageCapacity, error) { return c.rooms.ByIndex(byNode, node.Name) })
	if err != nil {
		return 0, err
	}
	var wanted []*storagev1.CSIStorageCapacity
	if c.hosts(node) {
		wanted = roomsFor(node, classes, free)
	}
	return 0, c.writeRooms(reconcile.WithCause(ctx, node), mine, wanted)
}

// byNode files those that are ours under their node: each of a thousand has one, and all of them may change at once.
var byNode = reconcile.Index{Name: "setpoint/room", Keys: func(o metav1.Object) []string {
	owners := o.GetOwnerReferences()
	if o.GetNamespace() != metav1.NamespaceSystem || o.GetLabels()[managedBy] != localvolume.Driver || len(owners) != 1 {
		return nil
	}
	return []string{owners[0].Name}
}}

// roomsFor are what should be told of a node: the same for each class, since they share its disk.
func roomsFor(node *corev1.Node, classes []*storagev1.StorageClass, free int64) (rooms []*storagev1.CSIStorageCapacity) {
	for _, class := range classes {
		if !isOwnClass(class) {
			continue
		}
		name := sha256.Sum256([]byte(class.Name + "/" + node.Name))
		rooms = append(rooms, &storagev1.CSIStorageCapacity{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: metav1.NamespaceSystem, Name: "local-" + hex.EncodeToString(name[:10]), Labels: map[string]string{managedBy: localvolume.Driver},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}},
			},
			StorageClassName: class.Name,
			NodeTopology:     &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelHostname: node.Labels[corev1.LabelHostname]}},
			Capacity:         resource.NewQuantity(free, resource.BinarySI),
		})
	}
	return rooms
}

// writeRooms makes what is told what should be. What a capacity is of never changes, so one that is of something else is made anew.
func (c *controller) writeRooms(ctx context.Context, have, want []*storagev1.CSIStorageCapacity) error {
	api := c.env.Client.StorageV1().CSIStorageCapacities(metav1.NamespaceSystem)
	for _, room := range want {
		at := slices.IndexFunc(have, func(h *storagev1.CSIStorageCapacity) bool { return h.Name == room.Name && sameOwner(h, room) })
		var written *storagev1.CSIStorageCapacity
		var err error
		switch {
		case at < 0:
			written, err = api.Create(ctx, room, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				err = nil // the cache will show it
			}
		case have[at].Capacity == nil || have[at].Capacity.Cmp(*room.Capacity) != 0:
			next := have[at].DeepCopy()
			next.Capacity = room.Capacity
			written, err = api.Update(ctx, next, metav1.UpdateOptions{})
		}
		if err != nil {
			return err
		}
		if written != nil {
			c.writtenRooms.Wrote(written)
		}
		if at >= 0 {
			have = slices.Delete(have, at, at+1)
		}
	}
	for _, room := range have {
		if err := api.Delete(ctx, room.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

func sameOwner(a, b *storagev1.CSIStorageCapacity) bool {
	return a.OwnerReferences[0].UID == b.OwnerReferences[0].UID
}
