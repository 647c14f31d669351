package plugins

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// VolumeZone keeps a pod to the zones and regions that its volumes have as labels.
type VolumeZone struct{}

// zoneLabels are the labels of zones and regions, each with the one that took its place.
var zoneLabels = map[string]string{
	corev1.LabelTopologyZone: corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone: corev1.LabelTopologyZone,
	corev1.LabelTopologyRegion: corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
}

// zoneSeparator stands between the zones of a volume that is in several.
const zoneSeparator = "__"

// Name is the plugin's name.
func (VolumeZone) Name() string { return "VolumeZone" }

// Wakes: other volumes, or other labels of the node.
func (VolumeZone) Wakes() plugin.Event {
	return plugin.ClaimChanged | plugin.NodeAdded | plugin.NodeLabels
}

// Filter compares the labels of the volumes with those of nodes that have any.
func (VolumeZone) Filter(pod *plugin.Pod) func(*plugin.Node) *plugin.Rejection {
	var zoned []*corev1.PersistentVolume
	for _, v := range pod.Needs.Volumes {
		if hasZone(v.Labels) {
			zoned = append(zoned, v)
		}
	}
	if len(zoned) == 0 {
		return nil
	}
	return func(node *plugin.Node) *plugin.Rejection {
		if !hasZone(node.Labels) {
			return nil
		}
		for _, v := range zoned {
			if !inZoneOf(v, node) {
				return plugin.RejectForGood("node(s) had no available volume zone", "volume "+v.Name+" were in its zone")
			}
		}
		return nil
	}
}

func hasZone(labels map[string]string) bool {
	for label := range zoneLabels {
		if _, ok := labels[label]; ok {
			return true
		}
	}
	return false
}

func inZoneOf(v *corev1.PersistentVolume, node *plugin.Node) bool {
	for label, successor := range zoneLabels {
		zones, ok := v.Labels[label]
		if !ok {
			continue
		}
		zone, ok := node.Labels[label]
		if !ok {
			zone, ok = node.Labels[successor]
		}
		if !ok || !slices.Contains(strings.Split(zones, zoneSeparator), zone) {
			return false
		}
	}
	return true
}
