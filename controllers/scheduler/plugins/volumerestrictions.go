package plugins

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// VolumeRestrictions keeps a claim with the access mode ReadWriteOncePod to one pod, whatever the node, and a disk that
// pods name without a claim to one pod of a node.
type VolumeRestrictions struct{}

// Name is the plugin's name.
func (VolumeRestrictions) Name() string { return "VolumeRestrictions" }

// Wakes: the other pod has gone, or the claim is another one.
func (VolumeRestrictions) Wakes() plugin.Event { return plugin.ClaimChanged | plugin.PodGone }

// Survey counts the pods that use the claims.
func (VolumeRestrictions) Survey(pod *plugin.Pod, _ plugin.World) plugin.Survey {
	disks := DisksOf(pod.Pod)
	if len(pod.Needs.Exclusive)+len(disks) == 0 {
		return nil
	}
	return &restrictionsSurvey{namespace: pod.Namespace, claims: pod.Needs.Exclusive, disks: disks, users: map[int]int{}}
}

// restrictionsSurvey knows how many pods use the claims on each node that has such pods.
type restrictionsSurvey struct {
	namespace string
	claims    []string
	disks     []*corev1.Volume
	users     map[int]int // by slot
}

// Observe counts again what a node holds.
func (s *restrictionsSurvey) Observe(slot int, node *plugin.Node) {
	delete(s.users, slot)
	if node == nil {
		return
	}
	for _, p := range node.Pods {
		if p.Namespace == s.namespace && slices.ContainsFunc(s.claims, func(name string) bool { return usesClaim(p, name) }) {
			s.users[slot]++
		}
	}
}

func usesClaim(p *plugin.Pod, name string) bool {
	for i := range p.Spec.Volumes {
		if claim := p.Spec.Volumes[i].PersistentVolumeClaim; claim != nil && claim.ClaimName == name {
			return true
		}
	}
	return false
}

// Filter rejects nodes where a disk is taken, and all nodes while another pod uses one of the claims.
func (s *restrictionsSurvey) Filter(node *plugin.Node) *plugin.Rejection {
	if diskTaken(s.disks, node) {
		return plugin.Reject("node(s) had no available disk", "no other pod there had its disk")
	}
	if len(s.users) == 0 {
		return nil
	}
	return plugin.Reject("node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
		"no other pod used its claims")
}

// Score has no preference.
func (s *restrictionsSurvey) Score([]*plugin.Node, []int64) bool { return false }
