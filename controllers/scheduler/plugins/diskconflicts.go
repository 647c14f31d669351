package plugins

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// DisksOf are the pod's volumes of those kinds that name a disk without a claim, and that a node must not mount twice.
func DisksOf(pod *corev1.Pod) []*corev1.Volume {
	var disks []*corev1.Volume
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil || v.RBD != nil || v.ISCSI != nil {
			disks = append(disks, v)
		}
	}
	return disks
}

// diskTaken tells whether a pod on the node has one of the disks in a way that excludes another mount.
func diskTaken(disks []*corev1.Volume, node *plugin.Node) bool {
	if len(disks) == 0 {
		return false
	}
	return slices.ContainsFunc(node.Pods, func(p *plugin.Pod) bool {
		return slices.ContainsFunc(DisksOf(p.Pod), func(taken *corev1.Volume) bool {
			return slices.ContainsFunc(disks, func(v *corev1.Volume) bool { return excludes(v, taken) })
		})
	})
}

// excludes tells whether two volumes are the same disk and cannot both be mounted. Disks of Amazon never can, the others only
// to be read.
func excludes(a, b *corev1.Volume) bool {
	switch {
	case a.GCEPersistentDisk != nil && b.GCEPersistentDisk != nil:
		x, y := a.GCEPersistentDisk, b.GCEPersistentDisk
		return x.PDName == y.PDName && !(x.ReadOnly && y.ReadOnly)
	case a.AWSElasticBlockStore != nil && b.AWSElasticBlockStore != nil:
		return a.AWSElasticBlockStore.VolumeID == b.AWSElasticBlockStore.VolumeID
	case a.ISCSI != nil && b.ISCSI != nil:
		return a.ISCSI.IQN == b.ISCSI.IQN && !(a.ISCSI.ReadOnly && b.ISCSI.ReadOnly)
	case a.RBD != nil && b.RBD != nil:
		x, y := a.RBD, b.RBD
		shared := slices.ContainsFunc(x.CephMonitors, func(monitor string) bool { return slices.Contains(y.CephMonitors, monitor) })
		return shared && x.RBDPool == y.RBDPool && x.RBDImage == y.RBDImage && !(x.ReadOnly && y.ReadOnly)
	}
	return false
}
