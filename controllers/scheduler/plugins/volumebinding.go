package plugins

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// VolumeBinding keeps a pod to nodes that reach the volumes of its claims, and on which the claims that wait for their
// first consumer can get one: there is a free volume, or their provisioner makes volumes there. It prefers nodes by how much of
// the volumes there would be used.
type VolumeBinding struct {
	// Shape is valid, or empty for upstream's default: the less is used, the better.
	Shape []configv1.UtilizationShapePoint
}

var emptierIsBetter = []configv1.UtilizationShapePoint{{Utilization: 0, Score: shapeScoreMax}, {Utilization: utilizationMax, Score: 0}}

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

// Score compares, for each storage class, what the claims request with the capacity of the volumes that they would get.
// Volumes that are still to be made count for nothing: nobody knows how much room there is for them.
func (p VolumeBinding) Score(pod *plugin.Pod) func(*plugin.Node) int64 {
	needs, shape := &pod.Needs, p.Shape
	if len(needs.Late) == 0 {
		return nil
	}
	if len(shape) == 0 {
		shape = emptierIsBetter
	}
	return func(node *plugin.Node) int64 {
		choice, _ := needs.ChooseVolumes(node.Node)
		type amounts struct{ requested, capacity int64 }
		byClass := map[string]amounts{}
		for _, b := range choice.Bind {
			class := volume.GetPersistentVolumeClaimClass(b.Claim)
			requested, capacity := b.Claim.Spec.Resources.Requests[corev1.ResourceStorage], b.Volume.Spec.Capacity[corev1.ResourceStorage]
			byClass[class] = amounts{byClass[class].requested + requested.Value(), byClass[class].capacity + capacity.Value()}
		}
		if len(byClass) == 0 {
			return 0
		}
		var sum int64
		for _, a := range byClass {
			sum += shapeScore(shape, a.requested, a.capacity)
		}
		return int64(math.Round(float64(sum) / float64(len(byClass))))
	}
}

// Normalize: the scores are those of the shape.
func (VolumeBinding) Normalize([]int64) {}

// unreachable gives the first volume that cannot be used on the node.
func unreachable(volumes []*corev1.PersistentVolume, node *plugin.Node) *corev1.PersistentVolume {
	for _, v := range volumes {
		if volume.CheckNodeAffinity(v, node.Labels) != nil {
			return v
		}
	}
	return nil
}
