package plugins

import (
	"math"

	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// NodeResourcesBalancedAllocation prefers the node on which CPU and memory, or the resources that its args name, would be
// used to the same degree.
type NodeResourcesBalancedAllocation struct {
	// Args are complete and valid; nil is upstream's defaults.
	Args *configv1.NodeResourcesBalancedAllocationArgs
}

// Name is the plugin's name.
func (NodeResourcesBalancedAllocation) Name() string { return "NodeResourcesBalancedAllocation" }

// Score is above 75 where the pod makes the shares more equal, and below where it makes them less so. A pod that asks for none
// of the resources changes no balance.
func (p NodeResourcesBalancedAllocation) Score(pod *plugin.Pod) func(*plugin.Node) int64 {
	specs := cpuAndMemory
	if p.Args != nil {
		specs = p.Args.Resources
	}
	resources := scoredResources(specs, pod, false)
	var want int64
	for i := range resources {
		want += resources[i].want
	}
	if want == 0 {
		return nil
	}
	return func(node *plugin.Node) int64 {
		var few, fewBefore [4]float64 // as many as there usually are, without allocation
		shares, before := few[:0], fewBefore[:0]
		for i := range resources {
			if requested, have := resources[i].on(node); have > 0 {
				shares = append(shares, min(float64(requested)/float64(have), 1))
				before = append(before, min(float64(requested-resources[i].want)/float64(have), 1))
			}
		}
		return plugin.MaxScore/2 + (plugin.MaxScore/2+balance(shares)-balance(before))/2
	}
}

// balance is plugin.MaxScore for equal shares, and half of it for those that could not differ more.
func balance(shares []float64) int64 {
	return int64((1 - deviation(shares)) * float64(plugin.MaxScore))
}

// deviation is the standard deviation of the shares; a single one is always in balance with itself.
func deviation(shares []float64) float64 {
	switch len(shares) {
	case 0, 1:
		return 0
	case 2:
		return math.Abs(shares[0]-shares[1]) / 2
	}
	var sum, squares float64
	for _, share := range shares {
		sum += share
	}
	mean := sum / float64(len(shares))
	for _, share := range shares {
		squares += (share - mean) * (share - mean)
	}
	return math.Sqrt(squares / float64(len(shares)))
}

// Normalize: the scores are 50..100 already.
func (NodeResourcesBalancedAllocation) Normalize([]int64) {}
