package plugins

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// VolumeBinding keeps a pod to nodes that reach the volumes of its claims, and on which the claims that wait for their
// first consumer can get one: there is a free volume, or their provisioner makes volumes there.
type VolumeBinding struct{}

// Name is the plugin's name.
func (VolumeBinding) Name() string { return "VolumeBinding" }

// Wakes: other volumes, or other labels of the node.
func (VolumeBinding) Wakes() plugin.Event {
	return plugin.ClaimChanged | plugin.NodeAdded | plugin.NodeLabels
}

// Filter looks at the volumes' node affinity, and for volumes of the late claims.
func (VolumeBinding) Filter(pod *plugin.Pod) func(*plugin.Node) *plugin.Rejection {
	needs := &pod.Needs
	if len(needs.Volumes) == 0 && !needs.VolumeGone && len(needs.Late) == 0 {
		return nil
	}
	return func(node *plugin.Node) *plugin.Rejection {
		r := &plugin.Rejection{Unresolvable: true}
		add := func(reason, remedy string) {
			r.Reasons, r.Remedies = append(r.Reasons, reason), append(r.Remedies, remedy)
		}
		if v := unreachable(needs.Volumes, node); v != nil {
			add("node(s) didn't match PersistentVolume's node affinity", "volume "+v.Name+" could be used there")
		}
		if _, ok := needs.ChooseVolumes(node.Node); !ok {
			add("node(s) didn't find available persistent volumes to bind", "there were volumes for its claims")
		}
		if needs.VolumeGone {
			add("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", "the volumes of its claims existed")
		}
		if len(r.Reasons) == 0 {
			return nil
		}
		return r
	}
}

// unreachable gives the first volume that cannot be used on the node.
func unreachable(volumes []*corev1.PersistentVolume, node *plugin.Node) *corev1.PersistentVolume {
	for _, v := range volumes {
		if volume.CheckNodeAffinity(v, node.Labels) != nil {
			return v
		}
	}
	return nil
}
