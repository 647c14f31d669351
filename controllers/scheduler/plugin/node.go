package plugin

import (
	"math"

	corev1 "k8s.io/api/core/v1"
)

// Node is a node with the pods placed on it and their sums.
type Node struct {
	// Node is nil while pods name a node that has not been seen; such a node is never offered to plugins.
	*corev1.Node
	Name string
	Slot int // index in the scheduler's node table, stable while the node exists
	// Generation is set by the scheduler and grows whenever anything a plugin may look at changes.
	Generation   uint64
	Allocatable  Resources
	Requested    Resources
	Scored       Resources // as Requested, with defaults for containers that ask for nothing
	Pods         []*Pod
	AffinityPods int   // how many of Pods have affinity or anti-affinity terms
	lowest       int32 // the lowest priority of Pods; nothing if there are none
	images       map[string]int64
	hostPorts    []HostPort
}

// NewNode gives a node that is known by name only.
func NewNode(name string, slot int) *Node {
	return &Node{Name: name, Slot: slot}
}

// SetNode takes over a new version of the node object.
func (n *Node) SetNode(node *corev1.Node) {
	n.Node = node
	n.Allocatable = NewResources(node.Status.Allocatable)
	n.images = make(map[string]int64, len(node.Status.Images))
	for _, image := range node.Status.Images {
		for _, name := range image.Names {
			n.images[name] = image.SizeBytes
		}
	}
}

// AddPod counts a pod on the node.
func (n *Node) AddPod(pod *Pod) {
	if priority := pod.Priority(); len(n.Pods) == 0 || priority < n.lowest {
		n.lowest = priority
	}
	n.Pods = append(n.Pods, pod)
	n.hostPorts = append(n.hostPorts, pod.HostPorts...)
	n.count(pod, 1)
}

// RemovePod takes back AddPod for the very same value.
func (n *Node) RemovePod(pod *Pod) {
	for i, p := range n.Pods {
		if p != pod {
			continue
		}
		last := len(n.Pods) - 1
		n.Pods[i], n.Pods[last] = n.Pods[last], nil
		n.Pods = n.Pods[:last]
		n.count(pod, -1)
		n.recountPorts(pod)
		n.findLowest(pod)
		return
	}
}

// HasBelow tells whether any pod on the node has a lower priority.
func (n *Node) HasBelow(priority int32) bool {
	return len(n.Pods) > 0 && n.lowest < priority
}

func (n *Node) findLowest(removed *Pod) {
	if removed.Priority() > n.lowest || len(n.Pods) == 0 {
		return
	}
	n.lowest = math.MaxInt32
	for _, p := range n.Pods {
		n.lowest = min(n.lowest, p.Priority())
	}
}

// ReplacePod puts a new version in the place of one that counts the same.
func (n *Node) ReplacePod(old, pod *Pod) {
	for i, p := range n.Pods {
		if p == old {
			n.Pods[i] = pod
			return
		}
	}
}

func (n *Node) count(pod *Pod, sign int64) {
	n.Requested.Add(pod.Requests, sign)
	n.Scored.Add(pod.Scored, sign)
	if !pod.Affinity.Empty() {
		n.AffinityPods += int(sign)
	}
}

func (n *Node) recountPorts(removed *Pod) {
	if len(removed.HostPorts) == 0 {
		return
	}
	n.hostPorts = n.hostPorts[:0]
	for _, p := range n.Pods {
		n.hostPorts = append(n.hostPorts, p.HostPorts...)
	}
}

// TakenPort gives a port already taken on the node that conflicts with the wanted one.
func (n *Node) TakenPort(want HostPort) (HostPort, bool) {
	for _, have := range n.hostPorts {
		if have.Conflicts(want) {
			return have, true
		}
	}
	return HostPort{}, false
}

// ImageBytes is the size of an image the node already holds, 0 if it does not.
func (n *Node) ImageBytes(name string) int64 {
	return n.images[name]
}

// HasImages tells that the node reports any image at all.
func (n *Node) HasImages() bool {
	return len(n.images) > 0
}

// Clone copies the node so that pods can be taken off in a thought experiment; node object and pods stay shared.
func (n *Node) Clone() *Node {
	c := *n
	c.Pods = append([]*Pod(nil), n.Pods...)
	c.hostPorts = append([]HostPort(nil), n.hostPorts...)
	c.Requested, c.Scored = Resources{}, Resources{}
	c.Requested.Add(n.Requested, 1)
	c.Scored.Add(n.Scored, 1)
	return &c
}
