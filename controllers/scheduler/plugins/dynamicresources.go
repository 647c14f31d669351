package plugins

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// DynamicResources keeps a pod to nodes where the devices of its ResourceClaims are. A claim without an allocation that
// is reserved for the pod fits nowhere: nobody allocates yet.
type DynamicResources struct{}

// Name is the plugin's name.
func (DynamicResources) Name() string { return "DynamicResources" }

// Wakes: another allocation, or other labels of the node.
func (DynamicResources) Wakes() plugin.Event {
	return plugin.ClaimChanged | plugin.NodeAdded | plugin.NodeLabels
}

// Filter looks at the allocations of the pod's claims.
func (DynamicResources) Filter(pod *plugin.Pod) func(*plugin.Node) *plugin.Rejection {
	claims := pod.Needs.Devices
	if len(claims) == 0 {
		return nil
	}
	if slices.ContainsFunc(claims, func(c *resourcev1.ResourceClaim) bool { return !allocatedFor(c, pod) }) {
		return func(*plugin.Node) *plugin.Rejection {
			return plugin.RejectForGood("cannot allocate all claims", "its resource claims were allocated")
		}
	}
	return func(node *plugin.Node) *plugin.Rejection {
		for _, c := range claims {
			if !offers(node, c) {
				return plugin.RejectForGood("resourceclaim not available on the node", "the devices of "+c.Name+" were there")
			}
		}
		return nil
	}
}

// allocatedFor tells whether the claim has devices and the pod may use them.
func allocatedFor(c *resourcev1.ResourceClaim, pod *plugin.Pod) bool {
	return c.Status.Allocation != nil && slices.ContainsFunc(c.Status.ReservedFor,
		func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod.UID })
}

// offers tells whether the claim's devices can be reached from the node. A selector that cannot be read matches none.
func offers(node *plugin.Node, c *resourcev1.ResourceClaim) bool {
	selector := c.Status.Allocation.NodeSelector
	if selector == nil {
		return true
	}
	matches, err := corev1.MatchNodeSelectorTerms(node.Node, selector)
	return err == nil && matches
}
