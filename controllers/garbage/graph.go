package garbage

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// The two indexes that are the graph.
const (
	uidIndex   = "setpoint/uid"
	ownerIndex = "setpoint/owner"
)

// vertex is one object of the graph as the cache has it.
type vertex struct {
	object
	meta metav1.Object
}

// index makes a monitor a part of the graph.
func index(informer cache.SharedIndexInformer) error {
	err := reconcile.EnsureIndex(informer, uidIndex, func(o metav1.Object) []string { return []string{string(o.GetUID())} })
	if err != nil {
		return err
	}
	return reconcile.EnsureIndex(informer, ownerIndex, func(o metav1.Object) []string {
		var uids []string
		for _, ref := range o.GetOwnerReferences() {
			uids = append(uids, string(ref.UID))
		}
		return uids
	})
}

// dependents lists everything that names uid as an owner.
func (c *controller) dependents(uid types.UID) []vertex { return c.lookup(ownerIndex, uid, false) }

// find is the object with this uid.
func (c *controller) find(uid types.UID) (vertex, bool) {
	found := c.lookup(uidIndex, uid, true)
	if len(found) == 0 {
		return vertex{}, false
	}
	return found[0], true
}

func (c *controller) lookup(name string, uid types.UID, first bool) []vertex {
	c.mu.Lock()
	monitors := c.monitors
	c.mu.Unlock()
	var out []vertex
	for resource, informer := range monitors {
		found, err := reconcile.ByIndex[metav1.Object](informer, name, string(uid))
		if err != nil {
			continue // not indexed yet: not synced either
		}
		for _, o := range found {
			out = append(out, vertex{nameOf(resource, o), o})
		}
		if first && len(out) > 0 {
			return out
		}
	}
	return out
}

// synced reports whether the graph is complete.
func (c *controller) synced() bool {
	c.mu.Lock()
	monitors := c.monitors
	c.mu.Unlock()
	if len(monitors) == 0 {
		return false
	}
	for _, informer := range monitors {
		if !informer.HasSynced() {
			return false
		}
	}
	return true
}

// waits reports whether the object is being deleted after its dependents.
func waits(o metav1.Object) bool {
	return o.GetDeletionTimestamp() != nil && slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents)
}

// orphans reports whether the object is being deleted and lets go of its
// dependents.
func orphans(o metav1.Object) bool {
	return o.GetDeletionTimestamp() != nil && slices.Contains(o.GetFinalizers(), metav1.FinalizerOrphanDependents)
}

// blocks reports whether a dependent holds up its owner's foreground deletion.
func blocks(dependent metav1.Object, owner types.UID) bool {
	return slices.ContainsFunc(dependent.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.UID == owner && ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
	})
}
