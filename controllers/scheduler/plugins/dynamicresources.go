package plugins

import (
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// DynamicResources keeps a pod to nodes where the devices of its ResourceClaims are, or where those without devices can get some,
// and prefers nodes where they get the first of their alternatives.
type DynamicResources struct{}

// DevicesElsewhere is the reason why nodes are refused that do not reach the devices of a claim. Upstream's.
const DevicesElsewhere = "resourceclaim not available on the node"

// Name is the plugin's name.
func (DynamicResources) Name() string { return "DynamicResources" }

// Wakes: another allocation, other devices, or other labels of the node.
func (DynamicResources) Wakes() plugin.Event {
	return plugin.DevicesChanged | plugin.ClassChanged | plugin.NodeAdded | plugin.NodeLabels | plugin.NodeAllocatable
}

// Filter looks for devices, and at where those of the other claims are.
func (DynamicResources) Filter(pod *plugin.Pod) func(*plugin.Node) *plugin.Rejection {
	needs := &pod.Needs
	if len(needs.Devices) == 0 && needs.Allocate == nil {
		return nil
	}
	wanted := wantedDevices(needs)
	return func(node *plugin.Node) *plugin.Rejection {
		if needs.Allocate != nil {
			if _, err := needs.Allocate(node.Node); err != nil {
				return plugin.RejectForGood(err.Error(), wanted)
			}
		}
		for _, c := range needs.Devices {
			if slices.Contains(needs.Stuck, c) {
				return plugin.RejectForGood(DevicesElsewhere, "the devices of "+c.Name+" became ready")
			}
			if !OffersDevices(node, c) {
				return plugin.RejectForGood(DevicesElsewhere, "the devices of "+c.Name+" were there")
			}
		}
		return nil
	}
}

// wantedDevices is what would help where devices are missing.
func wantedDevices(needs *plugin.Needs) string {
	names := namesOfMissing(needs.Devices)
	switch {
	case needs.Stale != nil:
		return "claim " + needs.Stale.Name + " were deleted"
	case names == "":
		return "there were free devices for its extended resources"
	}
	return "there were free devices for " + names
}

// Score prefers nodes where requests get their first alternatives.
func (DynamicResources) Score(pod *plugin.Pod) func(*plugin.Node) int64 {
	needs := &pod.Needs
	if needs.Allocate == nil || !slices.ContainsFunc(needs.Devices, hasAlternatives) {
		return nil
	}
	return func(node *plugin.Node) int64 {
		results, err := needs.Allocate(node.Node)
		if err != nil {
			return 0
		}
		var sum int64
		for _, c := range needs.Devices {
			allocation := c.Status.Allocation
			if allocation == nil {
				allocation, results = &results[0], results[1:]
			}
			sum += rankOf(c, allocation)
		}
		return sum
	}
}

// Normalize makes the best node that of the most points.
func (DynamicResources) Normalize(scores []int64) { plugin.Normalize(scores, false) }

func hasAlternatives(c *resourcev1.ResourceClaim) bool {
	return slices.ContainsFunc(c.Spec.Devices.Requests, func(r resourcev1.DeviceRequest) bool { return len(r.FirstAvailable) > 0 })
}

// rankOf is the more, the earlier the alternatives stand that a claim got.
func rankOf(c *resourcev1.ResourceClaim, allocation *resourcev1.AllocationResult) int64 {
	got := map[string]bool{}
	for i := range allocation.Devices.Results {
		got[allocation.Devices.Results[i].Request] = true
	}
	var sum int64
	for _, request := range c.Spec.Devices.Requests {
		for i, alternative := range request.FirstAvailable {
			if got[request.Name+"/"+alternative.Name] {
				sum += int64(resourcev1.FirstAvailableDeviceRequestMaxSize - i)
			}
		}
	}
	return sum
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
