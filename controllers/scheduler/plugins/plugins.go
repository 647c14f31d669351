package plugins

import "github.com/setpoint-io/setpoint/controllers/scheduler/plugin"

// All gives the plugins in the order in which they judge a node; the first that rejects it explains the rejection.
// Cheap and final judgements come first, as upstream.
func All() []plugin.Plugin {
	return []plugin.Plugin{
		NodeUnschedulable{},
		NodeName{},
		TaintToleration{},
		NodeAffinity{},
		NodePorts{},
		NodeResourcesFit{},
		VolumeRestrictions{},
		NodeVolumeLimits{},
		VolumeBinding{},
		VolumeZone{},
		DynamicResources{},
		NodeDeclaredFeatures{},
		NodeResourcesBalancedAllocation{},
		ImageLocality{},
		PodTopologySpread{},
		InterPodAffinity{},
	}
}
