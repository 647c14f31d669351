package localvolume

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/internal/localvolume"
	"github.com/setpoint-io/setpoint/internal/simulatednode"
)

// end is what to do with a volume that goes.
type end int

const (
	stays end = iota
	// forgotten: the object goes, the data stays on the node.
	forgotten
	// deleted: the data goes, and then the object.
	deleted
)

// planEnd says what becomes of a volume; claimed says that the claim that it belongs to exists.
func planEnd(v *corev1.PersistentVolume, claimed bool) end {
	goes := v.DeletionTimestamp != nil && slices.Contains(v.Finalizers, dataFinalizer)
	switch {
	case claimed || v.Status.Phase == corev1.VolumeBound || v.Status.Phase == corev1.VolumePending:
		return stays
	case v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete &&
		(goes || v.DeletionTimestamp == nil && v.Status.Phase == corev1.VolumeReleased):
		return deleted
	case goes:
		return forgotten
	}
	return stays
}

func (c *controller) reconcileVolume(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	v, err := c.volumes.Get(key)
	if apierrors.IsNotFound(err) {
		c.ledger.giveBack(key.Name)
		return 0, nil
	}
	if err != nil || !isOurs(v) {
		return 0, err
	}
	what := planEnd(v, c.claimed(v))
	if what == stays {
		return 0, nil
	}
	ctx = reconcile.WithCause(ctx, v)
	if what == deleted {
		if err := c.deleteData(ctx, v); err != nil {
			return 0, err
		}
	}
	if v.DeletionTimestamp == nil { // its finalizer goes in the next pass
		only := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(v.UID))}
		return 0, c.env.Client.CoreV1().PersistentVolumes().Delete(ctx, v.Name, only)
	}
	next := v.DeepCopy()
	next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool { return f == dataFinalizer })
	_, err = c.env.Client.CoreV1().PersistentVolumes().Update(ctx, next, metav1.UpdateOptions{})
	return 0, err
}

func (c *controller) claimed(v *corev1.PersistentVolume) bool {
	ref := v.Spec.ClaimRef
	if ref == nil {
		return false
	}
	claim, err := c.claims.Get(reconcile.Key{Namespace: ref.Namespace, Name: ref.Name})
	return err == nil && (ref.UID == "" || claim.UID == ref.UID)
}

// deleteData has the agent delete it. A node that left the cluster took it along.
func (c *controller) deleteData(ctx context.Context, v *corev1.PersistentVolume) error {
	node := found(c.nodes, nodeOf(v))
	switch {
	case node == nil:
		if v.DeletionTimestamp == nil {
			c.env.Events.Eventf(v, corev1.EventTypeWarning, "NodeGone", "node %s is gone, with the data of this volume", nodeOf(v))
		}
		return nil
	case simulatednode.Is(node):
		return nil
	}
	err := c.agents.Remove(ctx, node.Name, v.Spec.CSI.VolumeHandle, false)
	if err != nil {
		c.env.Events.Event(v, corev1.EventTypeWarning, "VolumeFailedDelete", err.Error())
	}
	return err
}

// sweepInterval is how often the nodes' volumes are compared with the API's.
const sweepInterval = time.Hour

// sweep removes empty folders of a node that no volume and no claim belongs to: those of a term that ended between making the
// folder and writing the volume. What has data stays, since the API may have been restored from a backup.
func (c *controller) sweep(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	node := found(c.nodes, key.Name)
	if node == nil || simulatednode.Is(node) || !hasDriver(found(c.csiNodes, key.Name)) {
		return 0, nil
	}
	handles, err := c.agents.List(ctx, node.Name)
	if err != nil {
		return sweepInterval, nil //nolint:nilerr // an agent that is away is swept later
	}
	claims, err := c.claims.List("", labels.Everything())
	if err != nil {
		return 0, err
	}
	for _, handle := range handles {
		asked := slices.ContainsFunc(claims, func(claim *corev1.PersistentVolumeClaim) bool { return localvolume.Handle(claim.UID) == handle })
		if asked || found(c.volumes, handle) != nil {
			continue
		}
		if err := c.agents.Remove(ctx, node.Name, handle, true); err != nil {
			return 0, err
		}
	}
	return sweepInterval, nil
}
