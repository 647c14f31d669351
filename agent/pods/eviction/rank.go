package eviction

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Live is what the processes of a pod use right now.
type Live struct {
	MemoryBytes int64 // working set
	Processes   int64
	// Containers are the working sets by name.
	Containers map[string]int64
}

// Layout says which file systems are one.
type Layout struct {
	// ImagesApart: images are on another file system than the pods' files.
	ImagesApart bool
	// LayersWithPods: with ImagesApart, the writable layers of containers are where the pods' files are.
	LayersWithPods bool
}

// candidate is a pod that may be evicted, with what it uses of what is short.
type candidate struct {
	pod   *corev1.Pod
	use   int64
	known bool // whether it could be measured
}

// above is by how much it uses more than it requests.
func (c candidate) above(name corev1.ResourceName) int64 { return c.use - requested(c.pod, name) }

// requested is 0 for what cannot be requested.
func requested(pod *corev1.Pod, name corev1.ResourceName) int64 {
	q := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})[name]
	return q.Value()
}

func priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// rank puts first who has to go first, as a kubelet does: pods of which nothing is known, those that use more than they request,
// the least priority, who is furthest above its requests. Nobody requests process ids, so there the priority comes first.
func rank(list []candidate, name corev1.ResourceName) {
	slices.SortStableFunc(list, func(a, b candidate) int {
		byPriority := cmp.Compare(priority(a.pod), priority(b.pod))
		if !a.known || !b.known {
			byKnown := trueFirst(!a.known, !b.known)
			if name == pids {
				return cmp.Or(byPriority, byKnown)
			}
			return cmp.Or(byKnown, byPriority)
		}
		x, y := a.above(name), b.above(name)
		if name == pids {
			return cmp.Or(byPriority, cmp.Compare(y, x))
		}
		return cmp.Or(trueFirst(x > 0, y > 0), byPriority, cmp.Compare(y, x))
	})
}

func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// usage is all that is known of the pods.
type usage struct {
	live  map[types.UID]Live
	files map[types.UID]Usage
}

// candidates pairs each pod with what it uses of the signal.
func (u usage) candidates(pods []*corev1.Pod, s Signal, l Layout) []candidate {
	var out []candidate
	for _, pod := range pods {
		c := candidate{pod: pod}
		live, isLive := u.live[pod.UID]
		files, hasFiles := u.files[pod.UID]
		switch s {
		case MemoryAvailable, AllocatableMemoryAvailable:
			c.use, c.known = live.MemoryBytes, isLive
		case PIDAvailable:
			c.use, c.known = live.Processes, isLive
		case NodeFsAvailable, ImageFsAvailable:
			c.use, c.known = files.on(s, l).Bytes, hasFiles
		case NodeFsInodesFree, ImageFsInodesFree:
			c.use, c.known = files.on(s, l).Inodes, hasFiles
		}
		out = append(out, c)
	}
	return out
}

// on is what a pod has on the file system of the signal.
func (u Usage) on(s Signal, l Layout) Files {
	if !l.ImagesApart {
		return u.total()
	}
	images := s == ImageFsAvailable || s == ImageFsInodesFree
	var sum Files
	if images != l.LayersWithPods {
		sum.add(total(u.Layers))
	}
	if !images {
		sum.add(total(u.Logs), total(u.Volumes))
	}
	return sum
}
