package embedded

import (
	"cmp"
	"context"
	"path"
	"sync"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/cgroup"
)

func limitsOf(resources *runtimeapi.LinuxContainerResources) cgroup.Limits {
	limits := cgroup.Limits{
		CPUShares:   uint64(max(resources.GetCpuShares(), 0)),
		CPUQuota:    resources.GetCpuQuota(),
		CPUPeriod:   uint64(max(resources.GetCpuPeriod(), 0)),
		MemoryBytes: resources.GetMemoryLimitInBytes(),
		SwapBytes:   resources.GetMemorySwapLimitInBytes(),
		CPUs:        resources.GetCpusetCpus(),
		Mems:        resources.GetCpusetMems(),
		Unified:     resources.GetUnified(),
	}
	for _, limit := range resources.GetHugepageLimits() {
		if limits.HugePageBytes == nil {
			limits.HugePageBytes = map[string]uint64{}
		}
		limits.HugePageBytes[limit.GetPageSize()] = limit.GetLimit()
	}
	return limits
}

// shimMemoryBytes is what a pod's limit is raised by for the shim, and again for a pause process: they live in the pod's cgroup.
const shimMemoryBytes = 16 << 20

// podLimits are the whole pod's limits, with room for what is ours.
func (s *sandbox) podLimits(resources *runtimeapi.LinuxContainerResources) cgroup.Limits {
	limits, ours := limitsOf(resources), int64(shimMemoryBytes)
	if sharesPID(s.config) {
		ours += shimMemoryBytes
	}
	if limits.MemoryBytes > 0 {
		limits.MemoryBytes += ours
	}
	if limits.SwapBytes > 0 {
		limits.SwapBytes += ours
	}
	return limits
}

// mergeResources keeps what an update does not mention.
func mergeResources(before, update *runtimeapi.LinuxContainerResources) *runtimeapi.LinuxContainerResources {
	merged := &runtimeapi.LinuxContainerResources{}
	if before != nil {
		merged = proto.CloneOf(before)
	}
	if update != nil {
		if len(update.HugepageLimits) > 0 {
			merged.HugepageLimits = nil // merging would add to the list
		}
		proto.Merge(merged, update)
	}
	return merged
}

// groups makes the control groups of pods below the node's.
type groups struct {
	config *Config
	table  *table
	// paths is held while a pod's cgroup path is made or trimmed, so that neither undoes the other.
	paths sync.Mutex
}

// cgroupRoot is this node's part of the hierarchy: several agents may share a machine.
func (g *groups) cgroupRoot() string { return cgroup.NodePrefix + g.config.NodeName }

// podCgroup is below the parent that the agent or kubelet chose, or directly below the root; either way the sandbox owns it.
func (g *groups) podCgroup(id string, config *runtimeapi.PodSandboxConfig) string {
	parent := path.Clean("/" + config.GetLinux().GetCgroupParent())
	if !g.config.GivenCgroups || parent == "/" {
		parent = g.cgroupRoot() + parent
	}
	// Always ending in the sandbox's id: while a pod is being replaced, two sandboxes share its parent.
	return path.Join(parent, id)
}

func (g *groups) createPodCgroup(s *sandbox) error {
	g.paths.Lock()
	defer g.paths.Unlock()
	limits := s.podLimits(s.config.GetLinux().GetResources())
	pids, err := pidsMax()
	if err != nil {
		return err
	}
	limits.PIDs = cmp.Or(g.config.PodPIDsMax, pids*podPIDsPercent/100)
	if err := s.pod.Create(limits); err != nil {
		return err
	}
	return g.weighAbove(s, true)
}

// destroyPodCgroup removes the pod's group and those of its parents, up to the node's, that nobody else uses.
func (g *groups) destroyPodCgroup(s *sandbox) error {
	g.paths.Lock()
	defer g.paths.Unlock()
	if err := s.pod.Destroy(); err != nil {
		return err
	}
	s.pod.TrimParents()
	return g.weighAbove(s, false)
}

// UpdatePodSandboxResources changes the limits of the whole pod.
func (r *Runtime) UpdatePodSandboxResources(
	_ context.Context,
	request *runtimeapi.UpdatePodSandboxResourcesRequest,
) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	s, err := r.sandbox(request.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	limits := s.podLimits(mergeResources(request.GetOverhead(), request.GetResources()))
	if err := s.pod.Set(limits); err != nil {
		return nil, coded(err)
	}
	return &runtimeapi.UpdatePodSandboxResourcesResponse{}, nil
}
