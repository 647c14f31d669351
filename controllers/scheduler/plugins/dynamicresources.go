package plugins

import (
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// DynamicResources keeps a pod to nodes where the devices of its ResourceClaims are, or where those without devices can get some.
type DynamicResources struct{}

// DevicesElsewhere is the reason why nodes are refused that do not reach the devices of a claim. Upstream's.
const DevicesElsewhere = "resourceclaim not available on the node"

// Name is the plugin's name.
func (DynamicResources) Name() string { return "DynamicResources" }

// Wakes: another allocation, other devices, or other labels of the node.
func (DynamicResources) Wakes() plugin.Event {
	return plugin.DevicesChanged | plugin.NodeAdded | plugin.NodeLabels | plugin.NodeAllocatable
}

// Filter looks for devices, and at where those of the other claims are.
func (DynamicResources) Filter(pod *plugin.Pod) func(*plugin.Node) *plugin.Rejection {
	claims, allocate := pod.Needs.Devices, pod.Needs.Allocate
	if len(claims) == 0 {
		return nil
	}
	return func(node *plugin.Node) *plugin.Rejection {
		if allocate != nil {
			if _, err := allocate(node.Node); err != nil {
				return plugin.RejectForGood(err.Error(), "there were free devices for "+namesOfMissing(claims))
			}
		}
		for _, c := range claims {
			if !OffersDevices(node, c) {
				return plugin.RejectForGood(DevicesElsewhere, "the devices of "+c.Name+" were there")
			}
		}
		return nil
	}
}

// namesOfMissing are the claims without devices.
func namesOfMissing(claims []*resourcev1.ResourceClaim) string {
	var names []string
	for _, c := range claims {
		if c.Status.Allocation == nil {
			names = append(names, c.Name)
		}
	}
	return strings.Join(names, " and ")
}

// OffersDevices tells whether the claim's devices can be reached from the node, if it has some. A selector that cannot be read
// matches none.
func OffersDevices(node *plugin.Node, c *resourcev1.ResourceClaim) bool {
	if c.Status.Allocation == nil {
		return true
	}
	selector := c.Status.Allocation.NodeSelector
	if selector == nil {
		return true
	}
	matches, err := corev1.MatchNodeSelectorTerms(node.Node, selector)
	return err == nil && matches
}
