package plugins

import (
	"math"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// NodeResourcesBalancedAllocation prefers the node on which CPU and memory would be used to the same degree.
type NodeResourcesBalancedAllocation struct{}

// Name is the plugin's name.
func (NodeResourcesBalancedAllocation) Name() string { return "NodeResourcesBalancedAllocation" }

// Weight is upstream's.
func (NodeResourcesBalancedAllocation) Weight() int64 { return 1 }

// Score is 100 for equal shares and falls with their distance. A pod that asks for neither changes no balance.
func (NodeResourcesBalancedAllocation) Score(pod *plugin.Pod) func(*plugin.Node) int64 {
	want := pod.Requests
	if want.MilliCPU == 0 && want.Memory == 0 {
		return nil
	}
	return func(node *plugin.Node) int64 {
		have, used := &node.Allocatable, &node.Requested
		if have.MilliCPU == 0 || have.Memory == 0 {
			return plugin.MaxScore // a single resource is always in balance with itself
		}
		cpu := min(float64(used.MilliCPU+want.MilliCPU)/float64(have.MilliCPU), 1)
		memory := min(float64(used.Memory+want.Memory)/float64(have.Memory), 1)
		deviation := math.Abs(cpu-memory) / 2
		return int64((1 - deviation) * float64(plugin.MaxScore))
	}
}

// Normalize: the scores are 0..100 already.
func (NodeResourcesBalancedAllocation) Normalize([]int64) {}
