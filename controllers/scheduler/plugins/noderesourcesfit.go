package plugins

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// NodeResourcesFit keeps the sum of requests within what the node can allocate, and prefers the emptier node.
type NodeResourcesFit struct{}

// Name is the plugin's name.
func (NodeResourcesFit) Name() string { return "NodeResourcesFit" }

// Weight is upstream's.
func (NodeResourcesFit) Weight() int64 { return 1 }

// Wakes: something was freed, or the node grew.
func (NodeResourcesFit) Wakes() plugin.Event {
	return plugin.NodeAdded | plugin.NodeAllocatable | plugin.PodGone | plugin.PodShrunk
}

// Filter compares every requested resource with what is left.
func (NodeResourcesFit) Filter(pod *plugin.Pod) func(*plugin.Node) *plugin.Rejection {
	want := pod.Requests
	scalars := slices.Sorted(maps.Keys(want.Scalar))
	return func(node *plugin.Node) *plugin.Rejection {
		have, used := &node.Allocatable, &node.Requested
		if fits(want.MilliCPU, used.MilliCPU, have.MilliCPU) && fits(want.Memory, used.Memory, have.Memory) &&
			fits(want.EphemeralStorage, used.EphemeralStorage, have.EphemeralStorage) &&
			used.Pods+1 <= have.Pods && len(scalars) == 0 {
			return nil
		}
		return shortages(want, node, scalars)
	}
}

func fits(want, used, have int64) bool {
	return want == 0 || want <= have-used
}

// shortages lists what is missing, or gives nil if nothing is.
func shortages(want plugin.Resources, node *plugin.Node, scalars []corev1.ResourceName) *plugin.Rejection {
	var r plugin.Rejection
	have, used := node.Allocatable, node.Requested
	if used.Pods+1 > have.Pods {
		r.Reasons = append(r.Reasons, "Too many pods")
		r.Remedies = append(r.Remedies, "it ran fewer pods")
		r.Unresolvable = have.Pods == 0
	}
	add := func(name corev1.ResourceName, want, used, have int64) {
		if !fits(want, used, have) {
			addShortage(&r, name, want, used, have)
		}
	}
	add(corev1.ResourceCPU, want.MilliCPU, used.MilliCPU, have.MilliCPU)
	add(corev1.ResourceMemory, want.Memory, used.Memory, have.Memory)
	add(corev1.ResourceEphemeralStorage, want.EphemeralStorage, used.EphemeralStorage, have.EphemeralStorage)
	for _, name := range scalars {
		add(name, want.Scalar[name], used.Scalar[name], have.Scalar[name])
	}
	if len(r.Reasons) == 0 {
		return nil
	}
	return &r
}

// The cost of a pod that is too large for an empty node: no deficit on another node is worse.
const costTooLarge = 1_000_000

func addShortage(r *plugin.Rejection, name corev1.ResourceName, want, used, have int64) {
	r.Reasons = append(r.Reasons, "Insufficient "+string(name))
	if want > have {
		r.Unresolvable = true
		r.Cost += costTooLarge
		r.Remedies = append(r.Remedies, fmt.Sprintf("the pod requested at most %s %s", amount(name, have), name))
		return
	}
	short := want - (have - used)
	r.Cost += 1000 * short / max(have, 1)
	r.Remedies = append(r.Remedies, fmt.Sprintf("%s %s were freed", amount(name, short), name))
}

// amount writes a quantity the way people write requests; memory is rounded up to whole Mi so that it stays readable.
func amount(name corev1.ResourceName, v int64) string {
	const mebi = 1 << 20
	switch name {
	case corev1.ResourceCPU:
		return resource.NewMilliQuantity(v, resource.DecimalSI).String()
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		if v >= mebi {
			v = (v + mebi - 1) / mebi * mebi
		}
		return resource.NewQuantity(v, resource.BinarySI).String()
	default:
		return resource.NewQuantity(v, resource.DecimalSI).String()
	}
}

// Score prefers the node with the largest free share of CPU and memory after the pod was placed (LeastAllocated).
func (NodeResourcesFit) Score(pod *plugin.Pod) func(*plugin.Node) int64 {
	return func(node *plugin.Node) int64 {
		var sum, weights int64
		add := func(want, used, have int64) {
			if have == 0 {
				return
			}
			weights++
			if want+used <= have {
				sum += (have - used - want) * plugin.MaxScore / have
			}
		}
		add(pod.Scored.MilliCPU, node.Scored.MilliCPU, node.Allocatable.MilliCPU)
		add(pod.Scored.Memory, node.Scored.Memory, node.Allocatable.Memory)
		if weights == 0 {
			return 0
		}
		return sum / weights
	}
}

// Normalize: the scores are shares already.
func (NodeResourcesFit) Normalize([]int64) {}
