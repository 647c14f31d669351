package memory

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/resources/topology"
)

// Block is memory of some NUMA nodes, which together give it.
type Block struct {
	Nodes []int               `json:"numaAffinity"`
	Type  corev1.ResourceName `json:"type"`
	// Size in bytes. That of an init container shrinks when the pod's next container is given of it.
	Size uint64 `json:"size"`
}

// State is who has which blocks, by pod and container.
type State map[types.UID]map[string][]Block

// Clone is a copy that can be changed by itself.
func (s State) Clone() State {
	out := State{}
	for pod, containers := range s {
		out[pod] = map[string][]Block{}
		for name, blocks := range containers {
			out[pod][name] = slices.Clone(blocks)
		}
	}
	return out
}

// Free removes what a pod has, and reports whether that was anything.
func (s State) Free(pod types.UID) bool {
	_, had := s[pod]
	delete(s, pod)
	return had
}

// Has reports whether a pod has memory of its own.
func (s State) Has(pod types.UID) bool { return len(s[pod]) > 0 }

// Nodes are those from which a container has its memory; none: from any.
func (s State) Nodes(pod types.UID, container string) topology.Nodes {
	var nodes topology.Nodes
	for _, b := range s[pod][container] {
		nodes |= topology.NodesOf(b.Nodes...)
	}
	return nodes
}

// Started frees what the init containers have that have ended when a container starts, and reports whether that was anything. When an
// ephemeral one starts, nothing has ended for it.
func (s State) Started(pod *corev1.Pod, container string) bool {
	var ended []string
	for c, ends := range topology.Containers(pod) {
		if c.Name == container {
			return s.drop(pod.UID, ended)
		}
		if ends {
			ended = append(ended, c.Name)
		}
	}
	return false
}

func (s State) drop(pod types.UID, containers []string) bool {
	before := len(s[pod])
	for _, name := range containers {
		delete(s[pod], name)
	}
	dropped := len(s[pod]) < before
	if len(s[pod]) == 0 {
		delete(s, pod)
	}
	return dropped
}

func (s State) put(pod types.UID, container string, blocks []Block) {
	if s[pod] == nil {
		s[pod] = map[string][]Block{}
	}
	s[pod][container] = blocks
}

// handedOn is how much a container may have of what init containers have that will have ended by then.
func (s State) handedOn(pod *corev1.Pod, container string, nodes topology.Nodes, of corev1.ResourceName) uint64 {
	sum := uint64(0)
	for c, ends := range topology.Containers(pod) {
		if c.Name == container {
			break
		}
		for _, b := range s[pod.UID][c.Name] {
			if ends && b.Type == of && topology.NodesOf(b.Nodes...) == nodes {
				sum += b.Size
			}
		}
	}
	return sum
}

// shrink takes what was handed on to a block from those who had it.
func (s State) shrink(pod *corev1.Pod, container string, by Block) {
	for c, ends := range topology.Containers(pod) {
		if c.Name == container {
			return
		}
		blocks := s[pod.UID][c.Name]
		for i := range blocks {
			if b := &blocks[i]; ends && b.Type == by.Type && slices.Equal(b.Nodes, by.Nodes) {
				part := min(b.Size, by.Size)
				b.Size, by.Size = b.Size-part, by.Size-part
			}
		}
	}
}

// all are the blocks of everybody, in an order that does not change.
func (s State) all() []Block {
	var out []Block
	for _, pod := range slices.Sorted(maps.Keys(s)) {
		for _, name := range slices.Sorted(maps.Keys(s[pod])) {
			out = append(out, s[pod][name]...)
		}
	}
	return out
}
