package eviction

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Signal is something of which a node can have too little, by upstream's name.
type Signal string

// What is left of the machine's memory, of what pods may have of it, of the disk of pods' files, of that of images and of process ids.
const (
	MemoryAvailable            Signal = "memory.available"
	AllocatableMemoryAvailable Signal = "allocatableMemory.available"
	NodeFsAvailable            Signal = "nodefs.available"
	NodeFsInodesFree           Signal = "nodefs.inodesFree"
	ImageFsAvailable           Signal = "imagefs.available"
	ImageFsInodesFree          Signal = "imagefs.inodesFree"
	PIDAvailable               Signal = "pid.available"
)

// Names of resources in messages that no pod can request.
const (
	inodes corev1.ResourceName = "inodes"
	pids   corev1.ResourceName = "pids"
)

// kind is what a signal means.
type kind struct {
	signal    Signal
	resource  corev1.ResourceName
	condition corev1.NodeConditionType
	format    resource.Format
}

// kinds are all signals, in the order in which they are relieved: memory first, as with a kubelet.
var kinds = []kind{
	{MemoryAvailable, corev1.ResourceMemory, corev1.NodeMemoryPressure, resource.BinarySI},
	{AllocatableMemoryAvailable, corev1.ResourceMemory, corev1.NodeMemoryPressure, resource.BinarySI},
	{NodeFsAvailable, corev1.ResourceEphemeralStorage, corev1.NodeDiskPressure, resource.BinarySI},
	{NodeFsInodesFree, inodes, corev1.NodeDiskPressure, resource.DecimalSI},
	{ImageFsAvailable, corev1.ResourceEphemeralStorage, corev1.NodeDiskPressure, resource.BinarySI},
	{ImageFsInodesFree, inodes, corev1.NodeDiskPressure, resource.DecimalSI},
	{PIDAvailable, pids, corev1.NodePIDPressure, resource.DecimalSI},
}

func kindOf(s Signal) (kind, bool) {
	i := rankOf(s)
	if i < 0 {
		return kind{}, false
	}
	return kinds[i], true
}

func rankOf(s Signal) int { return slices.IndexFunc(kinds, func(k kind) bool { return k.signal == s }) }

// Observation is how much of something there is, and how much of it is left.
type Observation struct{ Capacity, Available int64 }

// Observations of one look. What could not be seen is not in them.
type Observations map[Signal]Observation

// Amount is a quantity, or a fraction of the capacity.
type Amount struct {
	Quantity *resource.Quantity
	Fraction float32
}

func (a Amount) of(capacity int64) int64 { return a.quantity(capacity).Value() }

// quantity is as messages show it.
func (a Amount) quantity(capacity int64) *resource.Quantity {
	if a.Quantity != nil {
		return a.Quantity
	}
	return resource.NewQuantity(int64(float64(capacity)*float64(a.Fraction)), resource.BinarySI)
}

// Threshold is how much of a signal must be left.
type Threshold struct {
	Signal Signal
	Value  Amount
	// Grace is how long less may be left before a pod is evicted; 0 makes the threshold a hard one.
	Grace time.Duration
	// MinReclaim is how much more must be free before the threshold counts as kept again.
	MinReclaim Amount
}

func (t Threshold) hard() bool { return t.Grace == 0 }

// crossed reports whether less is left than must be; what cannot be seen crosses nothing.
func (t Threshold) crossed(seen Observations, reclaim bool) bool {
	o, ok := seen[t.Signal]
	if !ok {
		return false
	}
	want := t.Value.of(o.Capacity)
	if reclaim {
		want += t.MinReclaim.of(o.Capacity)
	}
	return o.Available < want
}

// Policy says when pods are evicted for the node's sake. The zero Policy evicts none.
type Policy struct {
	// Thresholds in the order in which they are relieved; ParseThresholds sorts them.
	Thresholds []Threshold
	// Transition is how long a pressure counts after it was seen last: what frees a resource often does so for a moment only.
	Transition time.Duration
	// MaxGraceSeconds is the longest time that pods get to end when a soft threshold is crossed.
	MaxGraceSeconds int64
}

// HardThreshold is how much of s must be left of capacity lest pods are evicted at once.
func (p Policy) HardThreshold(s Signal, capacity int64) int64 {
	for _, t := range p.Thresholds {
		if t.Signal == s && t.hard() {
			return t.Value.of(capacity)
		}
	}
	return 0
}
