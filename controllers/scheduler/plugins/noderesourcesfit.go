package plugins

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// NodeResourcesFit keeps the sum of requests within what the node can allocate, and prefers the emptier node or, by another
// strategy, the fuller one.
type NodeResourcesFit struct {
	// Args are complete and valid; nil is upstream's defaults.
	Args *configv1.NodeResourcesFitArgs
}

// Name is the plugin's name.
func (NodeResourcesFit) Name() string { return "NodeResourcesFit" }

// Wakes: something was freed, the node grew, or devices can satisfy another extended resource.
func (NodeResourcesFit) Wakes() plugin.Event {
	return plugin.NodeAdded | plugin.NodeAllocatable | plugin.PodGone | plugin.PodShrunk | plugin.ClassChanged
}

// Filter compares every requested resource with what is left.
func (p NodeResourcesFit) Filter(pod *plugin.Pod) func(*plugin.Node) *plugin.Rejection {
	want := pod.Requests
	scalars, byDevices := slices.DeleteFunc(slices.Sorted(maps.Keys(want.Scalar)), p.ignores), pod.Needs.ByDevices
	return func(node *plugin.Node) *plugin.Rejection {
		have, used := &node.Allocatable, &node.Requested
		if fits(want.MilliCPU, used.MilliCPU, have.MilliCPU) && fits(want.Memory, used.Memory, have.Memory) &&
			fits(want.EphemeralStorage, used.EphemeralStorage, have.EphemeralStorage) &&
			used.Pods+1 <= have.Pods && len(scalars) == 0 {
			return nil
		}
		return shortages(want, node, scalars, byDevices)
	}
}

// ignores tells whether the filter leaves out a resource. It can be an extended one only, as upstream: of a domain other than
// Kubernetes' own.
func (p NodeResourcesFit) ignores(name corev1.ResourceName) bool {
	group, _, extended := strings.Cut(string(name), "/")
	if p.Args == nil || !extended || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix) {
		return false
	}
	return slices.Contains(p.Args.IgnoredResources, string(name)) || slices.Contains(p.Args.IgnoredResourceGroups, group)
}

func fits(want, used, have int64) bool {
	return want == 0 || want <= have-used
}

// shortages lists what is missing, or gives nil if nothing is. What devices satisfy on the node is left to DynamicResources.
func shortages(
	want plugin.Resources, node *plugin.Node, scalars []corev1.ResourceName, byDevices func(corev1.ResourceName) bool,
) *plugin.Rejection {
	var r plugin.Rejection
	have, used := node.Allocatable, node.Requested
	if used.Pods+1 > have.Pods {
		r.Reasons = append(r.Reasons, "Too many pods")
		r.Remedies = append(r.Remedies, plugin.Text("it ran fewer pods"))
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
		if byDevices != nil && have.Scalar[name] == 0 && byDevices(name) {
			continue
		}
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
	r.Reasons = append(r.Reasons, insufficient(name))
	if want > have {
		r.Unresolvable = true
		r.Cost += costTooLarge
		r.Remedies = append(r.Remedies, shortage{name, have, true})
		return
	}
	short := want - (have - used)
	r.Cost += 1000 * short / max(have, 1)
	r.Remedies = append(r.Remedies, shortage{name, short, false})
}

func insufficient(name corev1.ResourceName) string {
	switch name { // those that are met most often need no new string
	case corev1.ResourceCPU:
		return "Insufficient cpu"
	case corev1.ResourceMemory:
		return "Insufficient memory"
	default:
		return "Insufficient " + string(name)
	}
}

// shortage is the remedy for one resource: the amount that has to be freed, or if the pod is too large, that it may request.
type shortage struct {
	name     corev1.ResourceName
	amount   int64
	tooLarge bool
}

func (s shortage) String() string {
	if s.tooLarge {
		return fmt.Sprintf("the pod requested at most %s %s", amount(s.name, s.amount), s.name)
	}
	return fmt.Sprintf("%s %s were freed", amount(s.name, s.amount), s.name)
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

// Score compares what would be requested of each resource with what the node has, by the strategy.
func (p NodeResourcesFit) Score(pod *plugin.Pod) func(*plugin.Node) int64 {
	strategy := p.strategy()
	resources := scoredResources(strategy.Resources, pod, true)
	score := strategyScore(strategy)
	ratio := strategy.Type == configv1.RequestedToCapacityRatio
	return func(node *plugin.Node) int64 {
		var sum, weights int64
		for i := range resources {
			requested, have := resources[i].on(node)
			if have == 0 {
				continue
			}
			s := score(requested, have)
			if ratio && s == 0 {
				continue // upstream leaves a resource out that has no score
			}
			sum += s * resources[i].weight
			weights += resources[i].weight
		}
		switch {
		case weights == 0:
			return 0
		case ratio:
			return int64(math.Round(float64(sum) / float64(weights)))
		}
		return sum / weights
	}
}

func (p NodeResourcesFit) strategy() *configv1.ScoringStrategy {
	if p.Args == nil || p.Args.ScoringStrategy == nil {
		return &configv1.ScoringStrategy{Type: configv1.LeastAllocated, Resources: cpuAndMemory}
	}
	return p.Args.ScoringStrategy
}

// strategyScore scores one resource of which the node has some.
func strategyScore(strategy *configv1.ScoringStrategy) func(requested, have int64) int64 {
	switch strategy.Type {
	case configv1.MostAllocated:
		return func(requested, have int64) int64 { return min(requested, have) * plugin.MaxScore / have }
	case configv1.RequestedToCapacityRatio:
		shape := strategy.RequestedToCapacityRatio.Shape
		return func(requested, have int64) int64 { return shapeScore(shape, requested, have) }
	default: // LeastAllocated
		return func(requested, have int64) int64 { return max(have-requested, 0) * plugin.MaxScore / have }
	}
}

// Normalize: the scores are shares already.
func (NodeResourcesFit) Normalize([]int64) {}
