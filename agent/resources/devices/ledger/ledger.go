package ledger

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Device is one as its plugin tells of it.
type Device struct {
	ID      string
	Healthy bool
	// NUMA are the nodes of the machine to which it is near; empty: the plugin does not say.
	NUMA []int64
}

// Key is whose share something is.
type Key struct {
	Pod                 types.UID
	Container, Resource string
}

// Share is what a container has of one resource.
type Share struct {
	Key
	// Devices are sorted by their IDs; none occurs twice. Healthy has no meaning here.
	Devices []Device
	// Response is what the plugin answered to Allocate, in its encoding; nil while it was not asked.
	Response []byte
}

// IDs of the devices, sorted.
func (s *Share) IDs() []string {
	ids := make([]string, 0, len(s.Devices))
	for _, d := range s.Devices {
		ids = append(ids, d.ID)
	}
	return ids
}

// Ledger holds all shares of a node. The zero Ledger is not usable: call New.
type Ledger struct{ shares map[Key]Share }

// New returns an empty one.
func New() *Ledger { return &Ledger{shares: map[Key]Share{}} }

// Share of a container; false: it has none.
func (l *Ledger) Share(key Key) (Share, bool) {
	s, ok := l.shares[key]
	return s, ok
}

// Put enters a share, or replaces it.
func (l *Ledger) Put(s Share) { l.shares[s.Key] = s }

// Drop removes one share.
func (l *Ledger) Drop(key Key) { delete(l.shares, key) }

// Free removes the shares of a pod, and reports whether there were any.
func (l *Ledger) Free(pod types.UID) bool {
	before := len(l.shares)
	maps.DeleteFunc(l.shares, func(k Key, _ Share) bool { return k.Pod == pod })
	return len(l.shares) < before
}

// Has reports whether a pod has a share.
func (l *Ledger) Has(pod types.UID) bool {
	for k := range l.shares {
		if k.Pod == pod {
			return true
		}
	}
	return false
}

// Pods that have shares.
func (l *Ledger) Pods() []types.UID {
	found := map[types.UID]bool{}
	for k := range l.shares {
		found[k.Pod] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// All shares, sorted by pod, container and resource.
func (l *Ledger) All() []Share {
	return slices.SortedFunc(maps.Values(l.shares), func(a, b Share) int {
		return cmp.Or(cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container), cmp.Compare(a.Resource, b.Resource))
	})
}

// Of are the shares of one container, sorted by resource.
func (l *Ledger) Of(pod types.UID, container string) []Share {
	return slices.DeleteFunc(l.All(), func(s Share) bool { return s.Pod != pod || s.Container != container })
}

// Knows reports whether anybody has a share of the resource.
func (l *Ledger) Knows(resource string) bool {
	for k := range l.shares {
		if k.Resource == resource {
			return true
		}
	}
	return false
}

// inUse are the IDs of the devices of a resource that some container has.
func (l *Ledger) inUse(resource string) map[string]bool {
	used := map[string]bool{}
	for k, s := range l.shares {
		if k.Resource != resource {
			continue
		}
		for _, d := range s.Devices {
			used[d.ID] = true
		}
	}
	return used
}

// handedOn are the devices of the pod's earlier init containers which the container may have: those that have ended by the time it
// starts. What a sidecar or an earlier main container has stays theirs.
func (l *Ledger) handedOn(pod *corev1.Pod, container, resource string) []Device {
	free := map[string]Device{}
	each := func(c *corev1.Container, ends bool) {
		for _, d := range l.shares[Key{pod.UID, c.Name, resource}].Devices {
			if ends {
				free[d.ID] = d
			} else {
				delete(free, d.ID)
			}
		}
	}
	sorted := func() []Device {
		return slices.SortedFunc(maps.Values(free), func(a, b Device) int { return cmp.Compare(a.ID, b.ID) })
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.Name == container {
			return sorted()
		}
		each(c, c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways)
	}
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == container {
			break
		}
		each(&pod.Spec.Containers[i], false)
	}
	return sorted()
}
