package plugins

import "github.com/setpoint-io/setpoint/controllers/scheduler/plugin"

// NodeVolumeLimits keeps a pod off nodes that lack the drivers of its volumes or take no more volumes of them, by their
// CSINodes. A missing driver matters only if its CSIDriver says preventPodSchedulingIfMissing.
type NodeVolumeLimits struct{}

// Name is the plugin's name.
func (NodeVolumeLimits) Name() string { return "NodeVolumeLimits" }

// Wakes: a pod or an attachment has gone, or a CSINode or a claim has changed.
func (NodeVolumeLimits) Wakes() plugin.Event {
	return plugin.ClaimChanged | plugin.PodGone | plugin.NodeAdded
}

// Filter counts the volumes of the pods on the node, and those that are attached to it.
func (NodeVolumeLimits) Filter(pod *plugin.Pod) func(*plugin.Node) *plugin.Rejection {
	limits := pod.Needs.Limits
	if limits == nil {
		return nil
	}
	return func(node *plugin.Node) *plugin.Rejection {
		if driver := limits.Missing(node); driver != "" {
			return plugin.Reject(driver+" CSI driver is not installed on the node", "the driver "+driver+" were installed there")
		}
		if limits.Exceeded(node) {
			return plugin.Reject("node(s) exceed max volume count", "fewer volumes were attached there")
		}
		return nil
	}
}
