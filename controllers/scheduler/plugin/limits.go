package plugin

import corev1 "k8s.io/api/core/v1"

// CSIVolume is a volume as it counts against the limit of its driver on a node.
type CSIVolume struct{ Driver, Handle string }

// VolumeLimits are which drivers nodes have and how many volumes they take, for a pod with volumes of drivers with limits.
type VolumeLimits struct {
	// Version changes with anything that the limits are made from.
	Version uint64
	// Wanted are the pod's volumes, each once.
	Wanted []CSIVolume
	// Needed are the drivers that have to be on the node, and Drivers those that are there, by node.
	Needed  []string
	Drivers map[string]map[string]bool
	// Max is how many volumes a node takes, by node and driver; a driver without a limit is missing.
	Max map[string]map[string]int64
	// Attached are the volumes that VolumeAttachments name, by node.
	Attached map[string][]CSIVolume
	// Of gives the volumes of a placed pod.
	Of func(pod *corev1.Pod) []CSIVolume
}

// Missing is a driver that has to be on a node and is not; empty if there is none.
func (l *VolumeLimits) Missing(node *Node) string {
	for _, driver := range l.Needed {
		if !l.Drivers[node.Name][driver] {
			return driver
		}
	}
	return ""
}

// Exceeded tells whether the pod's volumes are too many for a node. A volume that a pod of the node uses already counts once.
func (l *VolumeLimits) Exceeded(node *Node) bool {
	limits := l.Max[node.Name]
	if len(limits) == 0 {
		return false
	}
	there := map[CSIVolume]bool{}
	for _, p := range node.Pods {
		for _, v := range l.Of(p.Pod) {
			there[v] = true
		}
	}
	added := map[string]int64{}
	for _, v := range l.Wanted {
		if !there[v] { // what is attached and used by no pod is counted twice, as upstream does
			added[v.Driver]++
		}
	}
	for _, v := range l.Attached[node.Name] {
		there[v] = true
	}
	count := map[string]int64{}
	for v := range there {
		count[v.Driver]++
	}
	for driver, n := range added {
		if limit, ok := limits[driver]; ok && count[driver]+n > limit {
			return true
		}
	}
	return false
}
