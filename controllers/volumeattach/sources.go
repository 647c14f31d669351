package volumeattach

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

var (
	// byNode files pods under the node that they are placed on.
	byNode = reconcile.Index{Name: "setpoint/node", Keys: func(o metav1.Object) []string {
		if p, ok := o.(*corev1.Pod); ok && p.Spec.NodeName != "" {
			return []string{p.Spec.NodeName}
		}
		return nil
	}}
	// byClaim files pods that have a node under the claims that they use.
	byClaim = reconcile.Index{Name: "setpoint/claim-of-scheduled", Keys: func(o metav1.Object) []string {
		p, ok := o.(*corev1.Pod)
		if !ok || p.Spec.NodeName == "" {
			return nil
		}
		var keys []string
		for i := range p.Spec.Volumes {
			if key, ok := claimOf(p, &p.Spec.Volumes[i]); ok {
				keys = append(keys, key.String())
			}
		}
		return keys
	}}
	// byAttachedNode files attachments under their node.
	byAttachedNode = reconcile.Index{Name: "setpoint/attached-node", Keys: func(o metav1.Object) []string {
		if a, ok := o.(*storagev1.VolumeAttachment); ok {
			return []string{a.Spec.NodeName}
		}
		return nil
	}}
	// byDriver files attachments under their driver.
	byDriver = reconcile.Index{Name: "setpoint/attacher", Keys: func(o metav1.Object) []string {
		if a, ok := o.(*storagev1.VolumeAttachment); ok {
			return []string{a.Spec.Attacher}
		}
		return nil
	}}
)

// sources name the nodes that a change concerns.
func (c *controller) sources() []reconcile.Source {
	return []reconcile.Source{
		reconcile.Changes(c.nodes, changedNode), reconcile.Changes(c.pods, nodeOfPod), reconcile.Changes(c.attachments, c.nodesOfAttachment),
		reconcile.Changes(c.claims, c.nodesOfClaim), reconcile.Changes(c.volumes, c.nodesOfVolume), reconcile.Changes(c.drivers, c.nodesOfDriver),
	}
}

// changedNode is a node of which anything has changed that the plan looks at.
func changedNode(before, after metav1.Object) []reconcile.Key {
	was, _ := before.(*corev1.Node)
	is, _ := after.(*corev1.Node)
	if was == nil {
		return []reconcile.Key{reconcile.KeyOf(is)}
	}
	if is != nil && was.UID == is.UID && healthy(was) == healthy(is) && managed(was) == managed(is) &&
		equality.Semantic.DeepEqual(was.Spec.Taints, is.Spec.Taints) && slices.Equal(was.Status.VolumesInUse, is.Status.VolumesInUse) &&
		slices.Equal(was.Status.VolumesAttached, is.Status.VolumesAttached) {
		return nil
	}
	return []reconcile.Key{reconcile.KeyOf(was)}
}

// nodeOfPod is the node of a pod with claims that begins or ceases to use them.
func nodeOfPod(before, after metav1.Object) []reconcile.Key {
	was, _ := before.(*corev1.Pod)
	is, _ := after.(*corev1.Pod)
	if was != nil && is != nil && was.UID == is.UID && uses(was) == uses(is) {
		return nil
	}
	for _, p := range []*corev1.Pod{is, was} {
		if p != nil && len(byClaim.Keys(p)) > 0 {
			return []reconcile.Key{{Name: p.Spec.NodeName}}
		}
	}
	return nil
}

// nodesOfAttachment are the attachment's own node, and those with pods that use the same volume.
func (c *controller) nodesOfAttachment(before, after metav1.Object) []reconcile.Key {
	var keys []reconcile.Key
	for _, o := range []metav1.Object{before, after} {
		a, ok := o.(*storagev1.VolumeAttachment)
		if !ok {
			continue
		}
		c.reserved.shown(a)
		if after == nil || a.DeletionTimestamp != nil {
			c.memory.shown(a.UID)
		}
		keys = append(keys, reconcile.Key{Name: a.Spec.NodeName})
		if v, err := c.volumeOf(a); err == nil && v != nil && (before == nil || after == nil) {
			keys = append(keys, c.nodesOfVolume(nil, v)...)
		}
	}
	return slices.Compact(keys)
}

func (c *controller) nodesOfVolume(before, after metav1.Object) []reconcile.Key {
	var keys []reconcile.Key
	for _, o := range []metav1.Object{before, after} {
		if v, ok := o.(*corev1.PersistentVolume); ok && v.Spec.CSI != nil && v.Spec.ClaimRef != nil {
			keys = append(keys, c.nodesUsing(reconcile.Key{Namespace: v.Spec.ClaimRef.Namespace, Name: v.Spec.ClaimRef.Name})...)
		}
	}
	return keys
}

func (c *controller) nodesOfClaim(before, after metav1.Object) []reconcile.Key {
	if after == nil {
		after = before
	}
	return c.nodesUsing(reconcile.KeyOf(after))
}

// nodesUsing are the nodes with pods that name a claim.
func (c *controller) nodesUsing(claim reconcile.Key) []reconcile.Key {
	pods, err := c.pods.ByIndex(byClaim, claim.String())
	if err != nil {
		c.env.Logger.Error("looking up pods failed", "err", err) // the index is declared, so it is there
	}
	var keys []reconcile.Key
	for _, p := range pods {
		keys = append(keys, reconcile.Key{Name: p.Spec.NodeName})
	}
	return keys
}

// nodesOfDriver are all: drivers hardly ever change.
func (c *controller) nodesOfDriver(before, after metav1.Object) []reconcile.Key {
	was, _ := before.(*storagev1.CSIDriver)
	is, _ := after.(*storagev1.CSIDriver)
	if was != nil && is != nil && equality.Semantic.DeepEqual(was.Spec.AttachRequired, is.Spec.AttachRequired) {
		return nil
	}
	nodes, err := c.nodes.List("", nil)
	if err != nil {
		c.env.Logger.Error("listing nodes failed", "err", err) // they are declared
	}
	var keys []reconcile.Key
	for _, n := range nodes {
		keys = append(keys, reconcile.KeyOf(n))
	}
	return keys
}
