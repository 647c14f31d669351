package plugins

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// VolumeBinding keeps a pod to nodes that reach the volumes of its claims, and on which the claims that wait for their
// first consumer can get one: there is a free volume, or their provisioner makes volumes there and has room. It prefers
// nodes by how much of the volumes there would be used.
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
			r.Reasons, r.Remedies = append(r.Reasons, reason), append(r.Remedies, plugin.Text(remedy))
		}
		if v := unreachable(needs.Volumes, node); v != nil {
			add("node(s) didn't match PersistentVolume's node affinity", "volume "+v.Name+" could be used there")
		}
		switch _, lacks := needs.ChooseVolumes(node.Node); lacks {
		case plugin.NoVolume:
			add("node(s) didn't find available persistent volumes to bind", "there were volumes for its claims")
		case plugin.NoRoom:
			add("node(s) did not have enough free storage", "its driver had room for a volume there")
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

// Score compares, for each storage class, what the claims request with the capacity of the volumes that they would get or,
// when all of them are still to be made, with the room for them. Where nobody tells how much room there is, it counts for nothing.
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
		byClass := usedOf(choice.Bind)
		if len(choice.Bind) == 0 {
			byClass = usedOfRooms(choice)
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

// storageUse is how much of what there is would be used, in bytes.
type storageUse struct{ requested, capacity int64 }

// usedOf compares claims with volumes, by class.
func usedOf(bindings []plugin.VolumeBinding) map[string]storageUse {
	byClass := map[string]storageUse{}
	for _, b := range bindings {
		class, capacity := volume.GetPersistentVolumeClaimClass(b.Claim), b.Volume.Spec.Capacity[corev1.ResourceStorage]
		byClass[class] = storageUse{byClass[class].requested + requestOf(b.Claim), byClass[class].capacity + capacity.Value()}
	}
	return byClass
}

// usedOfRooms compares claims with the room for them, by class. All claims of a class share its room.
func usedOfRooms(choice plugin.VolumeChoice) map[string]storageUse {
	byClass := map[string]storageUse{}
	for i, claim := range choice.Provision {
		if room := choice.Rooms[i]; room != nil {
			class := volume.GetPersistentVolumeClaimClass(claim)
			byClass[class] = storageUse{byClass[class].requested + requestOf(claim), room.Capacity}
		}
	}
	return byClass
}

func requestOf(claim *corev1.PersistentVolumeClaim) int64 {
	requested := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return requested.Value()
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
