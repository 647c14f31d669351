package plugins

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/views"
)

// VolumeRestrictions keeps a claim with the access mode ReadWriteOncePod to one pod, whatever the node, and a disk that
// pods name without a claim to one pod of a node.
type VolumeRestrictions struct{}

// Name is the plugin's name.
func (VolumeRestrictions) Name() string { return "VolumeRestrictions" }

// Wakes: the other pod has gone, or the claim is another one.
func (VolumeRestrictions) Wakes() plugin.Event { return plugin.ClaimChanged | plugin.PodGone }

// Survey asks who uses the claims.
func (VolumeRestrictions) Survey(pod *plugin.Pod, world plugin.World) plugin.Survey {
	disks := DisksOf(pod.Pod)
	if len(pod.Needs.Exclusive)+len(disks) == 0 {
		return nil
	}
	return &restrictionsSurvey{views: world.Views, namespace: pod.Namespace, claims: pod.Needs.Exclusive, disks: disks}
}

type restrictionsSurvey struct {
	views     *views.Views
	namespace string
	claims    []string
	disks     []*corev1.Volume
}

func (s *restrictionsSurvey) inUse(claim string) bool {
	return s.views.ClaimUsers(s.namespace, claim) > 0
}

// Filters always: there is a disk or a claim.
func (s *restrictionsSurvey) Filters() bool { return true }

// Filter rejects nodes where a disk is taken, and all nodes while another pod uses one of the claims.
func (s *restrictionsSurvey) Filter(node *plugin.Node) *plugin.Rejection {
	if diskTaken(s.disks, node) {
		return plugin.Reject("node(s) had no available disk", "no other pod there had its disk")
	}
	if !slices.ContainsFunc(s.claims, s.inUse) {
		return nil
	}
	return plugin.Reject("node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
		"no other pod used its claims")
}

// Score has no preference.
func (s *restrictionsSurvey) Score([]*plugin.Node, []int64) bool { return false }

// Release has nothing to end.
func (s *restrictionsSurvey) Release() {}
