package plugin

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Requests assumed, for scoring only, for a container that asks for nothing: as upstream, so that many such pods spread.
const (
	defaultMilliCPU int64 = 100
	defaultMemory   int64 = 200 << 20
)

// Resources is a ResourceList in plain integers: quantities are too slow to add for every node.
type Resources struct {
	MilliCPU         int64
	Memory           int64 // bytes
	EphemeralStorage int64 // bytes
	Pods             int64
	Scalar           map[corev1.ResourceName]int64 // extended resources and huge pages
}

// NewResources reads a ResourceList.
func NewResources(list corev1.ResourceList) Resources {
	var r Resources
	for name, q := range list {
		switch name {
		case corev1.ResourceCPU:
			r.MilliCPU = q.MilliValue()
		case corev1.ResourceMemory:
			r.Memory = q.Value()
		case corev1.ResourceEphemeralStorage:
			r.EphemeralStorage = q.Value()
		case corev1.ResourcePods:
			r.Pods = q.Value()
		default:
			r.addScalar(name, q.Value())
		}
	}
	return r
}

// Add adds other, times sign (1 or -1).
func (r *Resources) Add(other Resources, sign int64) {
	r.MilliCPU += sign * other.MilliCPU
	r.Memory += sign * other.Memory
	r.EphemeralStorage += sign * other.EphemeralStorage
	r.Pods += sign * other.Pods
	for name, v := range other.Scalar {
		r.addScalar(name, sign*v)
	}
}

func (r *Resources) addScalar(name corev1.ResourceName, v int64) {
	if r.Scalar == nil {
		r.Scalar = map[corev1.ResourceName]int64{}
	}
	r.Scalar[name] += v
}

// Equal compares the amounts.
func (r Resources) Equal(other Resources) bool {
	return r.MilliCPU == other.MilliCPU && r.Memory == other.Memory && r.EphemeralStorage == other.EphemeralStorage &&
		r.Pods == other.Pods && maps.Equal(r.Scalar, other.Scalar)
}

// Within tells that no amount is larger than in other.
func (r Resources) Within(other Resources) bool {
	for name, v := range r.Scalar {
		if v > other.Scalar[name] {
			return false
		}
	}
	return r.MilliCPU <= other.MilliCPU && r.Memory <= other.Memory && r.EphemeralStorage <= other.EphemeralStorage && r.Pods <= other.Pods
}

// podRequests gives what the pod reserves, and the same with defaults for containers that ask for nothing.
func podRequests(pod *corev1.Pod) (exact, scored Resources) {
	opts := resourcehelper.PodResourcesOptions{UseStatusResources: true}
	exact = NewResources(resourcehelper.PodRequests(pod, opts))
	exact.Pods = 1
	opts.NonMissingContainerRequests = corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(defaultMilliCPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(defaultMemory, resource.BinarySI),
	}
	scored = NewResources(resourcehelper.PodRequests(pod, opts))
	return exact, Resources{MilliCPU: scored.MilliCPU, Memory: scored.Memory}
}
