package plugin

import "math/bits"

// causes are upstream's labels of the events, in their order.
var causes = [EventBits]string{
	"NodeAdd", "NodeDelete", "NodeUpdateNodeLabel", "NodeUpdateNodeTaint", "NodeUpdateNodeAllocatable", "NodeUpdateNodeDeclaredFeature",
	"AssignedPodAdd", "AssignedPodDelete", "AssignedPodUpdatePodLabel", "AssignedPodUpdatePodScaleDown", "NamespaceUpdate",
	"PersistentVolumeClaimUpdate", "ResourceClaimUpdate", "DeviceClassUpdate",
}

// Cause is the label that metrics have for a set of events: upstream's for the first of them, or for its closest relative. It is empty
// if there is none.
func (e Event) Cause() string {
	if e == 0 {
		return ""
	}
	return causes[bits.TrailingZeros(uint(e))]
}
