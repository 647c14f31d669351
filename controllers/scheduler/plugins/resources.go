package plugins

import (
	corev1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// cpuAndMemory are the resources that scores look at if a profile names none.
var cpuAndMemory = []configv1.ResourceSpec{
	{Name: string(corev1.ResourceCPU), Weight: 1}, {Name: string(corev1.ResourceMemory), Weight: 1},
}

// scored is a resource that a score looks at.
type scored struct {
	weight int64
	want   int64 // what the pod requests of it
	amount func(*plugin.Resources) int64
	// assumed counts requests of CPU and memory that containers leave out (plugin.Node.Scored).
	assumed bool
}

// scoredResources prepares the resources for one pod. A resource other than CPU, memory and ephemeral storage is left out
// unless the pod requests it, as upstream.
func scoredResources(specs []configv1.ResourceSpec, pod *plugin.Pod, assumed bool) []scored {
	var list []scored
	for _, spec := range specs {
		s := scored{weight: spec.Weight, amount: amountOf(corev1.ResourceName(spec.Name))}
		from := &pod.Requests
		switch corev1.ResourceName(spec.Name) {
		case corev1.ResourceCPU, corev1.ResourceMemory:
			if s.assumed = assumed; assumed {
				from = &pod.Scored
			}
		case corev1.ResourceEphemeralStorage:
		default:
			if pod.Requests.Scalar[corev1.ResourceName(spec.Name)] == 0 {
				continue
			}
		}
		s.want = s.amount(from)
		list = append(list, s)
	}
	return list
}

func amountOf(name corev1.ResourceName) func(*plugin.Resources) int64 {
	switch name {
	case corev1.ResourceCPU:
		return func(r *plugin.Resources) int64 { return r.MilliCPU }
	case corev1.ResourceMemory:
		return func(r *plugin.Resources) int64 { return r.Memory }
	case corev1.ResourceEphemeralStorage:
		return func(r *plugin.Resources) int64 { return r.EphemeralStorage }
	default:
		return func(r *plugin.Resources) int64 { return r.Scalar[name] }
	}
}

// on gives what would be requested on the node with the pod, and what the node has.
func (s *scored) on(node *plugin.Node) (requested, have int64) {
	used := &node.Requested
	if s.assumed {
		used = &node.Scored
	}
	return s.want + s.amount(used), s.amount(&node.Allocatable)
}

// The largest values of a shape's points: utilization in percent, and scores, which are scaled to plugin.MaxScore.
const (
	utilizationMax = 100
	shapeScoreMax  = 10
)

// shapeScore gives the score for a requested amount of a capacity: linear between the points of the shape, and even before
// the first and after the last. The points are in the order of their utilization.
func shapeScore(shape []configv1.UtilizationShapePoint, requested, capacity int64) int64 {
	used := int64(utilizationMax) // of nothing
	if capacity > 0 {
		used = requested * utilizationMax / capacity
	}
	score := func(i int) int64 { return int64(shape[i].Score) * plugin.MaxScore / shapeScoreMax }
	for i := range shape {
		at := int64(shape[i].Utilization)
		if used > at {
			continue
		}
		if i == 0 {
			return score(0)
		}
		before := int64(shape[i-1].Utilization)
		return score(i-1) + (score(i)-score(i-1))*(used-before)/(at-before)
	}
	return score(len(shape) - 1)
}
