package localvolume

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/storage/volume"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/internal/localvolume"
	"github.com/setpoint-io/setpoint/internal/simulatednode"
)

// roomRetry is when a claim that finds no room to grow is looked at again.
const roomRetry = time.Minute

func (c *controller) reconcileClaim(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	claim, err := c.claims.Get(key)
	if err != nil {
		return 0, reconcile.IgnoreNotFound(err)
	}
	ctx = reconcile.WithCause(ctx, claim)
	view := c.viewClaim(claim)
	plan := planClaim(view)
	switch {
	case plan.refuse != "":
		c.warn(claim, "ProvisioningFailed", plan.refuse)
		return 0, reconcile.Terminal(fmt.Errorf("claim %s: %s", key, plan.refuse)) // until the claim or its class changes
	case plan.elsewhere != "":
		return 0, c.giveUpNode(ctx, claim, plan.elsewhere)
	case plan.provision != nil:
		return 0, c.provision(ctx, view, plan.provision)
	case plan.grow:
		return c.grow(ctx, claim, view.volume)
	}
	return 0, nil
}

// viewClaim: what is not in a cache does not exist.
func (c *controller) viewClaim(claim *corev1.PersistentVolumeClaim) claimView {
	v := claimView{claim: claim}
	v.class = found(c.classes, volume.GetPersistentVolumeClaimClass(claim))
	v.volume = found(c.volumes, claim.Spec.VolumeName)
	if node := found(c.nodes, claim.Annotations[volume.AnnSelectedNode]); node != nil && c.hosts(node) {
		v.node = node
	}
	return v
}

func found[T metav1.Object](cache reconcile.Cache[T], name string) (none T) {
	if name == "" {
		return none
	}
	object, err := cache.Get(reconcile.Key{Name: name})
	if err != nil {
		return none
	}
	return object
}

// hosts tells whether the agent of a node has local volumes.
func (c *controller) hosts(node *corev1.Node) bool {
	if node.Labels[corev1.LabelHostname] == "" {
		return false
	}
	return simulatednode.Is(node) || hasDriver(found(c.csiNodes, node.Name))
}

func hasDriver(node *storagev1.CSINode) bool {
	if node == nil {
		return false
	}
	for i := range node.Spec.Drivers {
		if node.Spec.Drivers[i].Name == localvolume.Driver {
			return true
		}
	}
	return false
}

// totalOf is what all volumes of a node may have together.
func totalOf(node *corev1.Node) int64 {
	total := node.Status.Allocatable[corev1.ResourceEphemeralStorage]
	return total.Value()
}

// giveUpNode has the pod scheduled anew.
func (c *controller) giveUpNode(ctx context.Context, claim *corev1.PersistentVolumeClaim, why string) error {
	next := claim.DeepCopy()
	delete(next.Annotations, volume.AnnSelectedNode)
	if _, err := c.env.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, next, metav1.UpdateOptions{}); err != nil {
		return err
	}
	c.warn(claim, "ProvisioningFailed", why)
	return nil
}

// provision makes the volume on the node, and then in the API.
func (c *controller) provision(ctx context.Context, view claimView, v *corev1.PersistentVolume) error {
	if existing := found(c.volumes, v.Name); existing != nil {
		return nil // it is being bound
	}
	left, ok, err := c.take(v, view.node, bytesOf(v))
	if err != nil {
		return err
	}
	if !ok {
		return c.giveUpNode(ctx, view.claim, noRoom(view.node.Name, left))
	}
	if _, err := c.make(ctx, view.node, v, bytesOf(v)); err != nil {
		c.ledger.giveBack(v.Name)
		c.warn(view.claim, "ProvisioningFailed", err.Error())
		return err
	}
	_, err = c.env.Client.CoreV1().PersistentVolumes().Create(ctx, v, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil
	case err != nil:
		c.ledger.giveBack(v.Name)
		return err
	}
	c.env.Events.Eventf(view.claim, corev1.EventTypeNormal, "ProvisioningSucceeded", "Successfully provisioned volume %s on node %s", v.Name, view.node.Name)
	return nil
}

func noRoom(node string, left int64) string {
	return fmt.Sprintf("node %s has room for %s only", node, resource.NewQuantity(left, resource.BinarySI))
}

func (c *controller) take(v *corev1.PersistentVolume, node *corev1.Node, bytes int64) (left int64, ok bool, err error) {
	return c.ledger.take(v.Name, node.Name, bytes, totalOf(node), c.allVolumes)
}

func (c *controller) allVolumes() ([]*corev1.PersistentVolume, error) {
	return c.volumes.List("", labels.Everything())
}

func (c *controller) make(ctx context.Context, node *corev1.Node, v *corev1.PersistentVolume, bytes int64) (localvolume.Volume, error) {
	want := localvolume.Volume{Bytes: bytes, Block: v.Spec.VolumeMode != nil && *v.Spec.VolumeMode == corev1.PersistentVolumeBlock}
	if simulatednode.Is(node) {
		return want, nil
	}
	return c.agents.Make(ctx, node.Name, v.Spec.CSI.VolumeHandle, want)
}

// grow enlarges the volume on the node, then in the API, then tells the claim.
func (c *controller) grow(ctx context.Context, claim *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) (time.Duration, error) {
	wanted := requestOf(claim)
	if has := v.Spec.Capacity[corev1.ResourceStorage]; has.Cmp(*wanted) < 0 {
		node := found(c.nodes, nodeOf(v))
		if node == nil {
			return 0, nil
		}
		left, ok, err := c.take(v, node, wanted.Value())
		if err != nil {
			return 0, err
		}
		if !ok {
			c.warn(claim, "VolumeResizeFailed", noRoom(node.Name, left))
			return roomRetry, nil
		}
		if _, err := c.make(ctx, node, v, wanted.Value()); err != nil {
			c.ledger.giveBack(v.Name)
			c.warn(claim, "VolumeResizeFailed", err.Error())
			return 0, err
		}
		next := v.DeepCopy()
		next.Spec.Capacity[corev1.ResourceStorage] = *wanted
		if _, err := c.env.Client.CoreV1().PersistentVolumes().Update(ctx, next, metav1.UpdateOptions{}); err != nil {
			c.ledger.giveBack(v.Name)
			return 0, err
		}
	}
	return 0, c.grown(ctx, claim, *wanted)
}

// grown tells the claim how much it has. A folder has no file system that would have to grow as well.
func (c *controller) grown(ctx context.Context, claim *corev1.PersistentVolumeClaim, has resource.Quantity) error {
	next := claim.DeepCopy()
	if next.Status.Capacity == nil {
		next.Status.Capacity = corev1.ResourceList{}
	}
	next.Status.Capacity[corev1.ResourceStorage] = has
	next.Status.Conditions = nil
	if _, err := c.env.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{}); err != nil {
		return err
	}
	c.env.Events.Event(claim, corev1.EventTypeNormal, "VolumeResizeSuccessful", "Resize volume succeeded")
	return nil
}

func (c *controller) warn(claim *corev1.PersistentVolumeClaim, reason, message string) {
	c.env.Events.Event(claim, corev1.EventTypeWarning, reason, message)
}

func requestOf(claim *corev1.PersistentVolumeClaim) *resource.Quantity {
	return claim.Spec.Resources.Requests.Storage()
}
