package podstest

import (
	"context"
	"errors"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// errBeyondPod is the kernel's answer to a quota that is larger than that of the cgroup around it.
var errBeyondPod = errors.New("write cpu.cfs_quota_us: invalid argument")

// UsesMemory sets what the containers of a name use, in bytes.
func (r *Runtime) UsesMemory(name string, bytes uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memory[name] = bytes
}

// FailUpdates makes changes of resources fail, or work again for nil.
func (r *Runtime) FailUpdates(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.updateError = err
}

// fits reports whether the container has no more CPU than its pod. r.mu is held.
func (r *Runtime) fits(c *container) bool {
	pod := r.limits[c.sandbox].GetCpuQuota()
	return pod <= 0 || c.Resources.GetLinux().GetCpuQuota() > 0 && c.Resources.GetLinux().GetCpuQuota() <= pod
}

// UpdateContainerResources is noted as "limit NAME cpu=QUOTA memory=BYTES".
func (r *Runtime) UpdateContainerResources(_ context.Context, id string, resources *runtimeapi.ContainerResources) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[id]
	if c == nil {
		return gone(id)
	}
	if r.updateError != nil {
		return r.updateError
	}
	before := c.Resources
	c.Resources = resources
	if !r.fits(c) {
		c.Resources = before
		return errBeyondPod
	}
	r.called("limit %s cpu=%d memory=%d", c.Metadata.Name, resources.Linux.CpuQuota, resources.Linux.MemoryLimitInBytes)
	return nil
}

// UpdatePodSandboxResources is noted as "limit pod cpu=QUOTA memory=BYTES".
func (r *Runtime) UpdatePodSandboxResources(
	_ context.Context,
	req *runtimeapi.UpdatePodSandboxResourcesRequest,
) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.limits[req.PodSandboxId]
	r.limits[req.PodSandboxId] = req.Resources
	for _, c := range r.containers {
		if c.sandbox == req.PodSandboxId && c.State == runtimeapi.ContainerState_CONTAINER_RUNNING && !r.fits(c) {
			r.limits[req.PodSandboxId] = before
			return nil, fmt.Errorf("container %s: %w", c.Metadata.Name, errBeyondPod)
		}
	}
	r.called("limit pod cpu=%d memory=%d", req.Resources.CpuQuota, req.Resources.MemoryLimitInBytes)
	return &runtimeapi.UpdatePodSandboxResourcesResponse{}, nil
}

// ContainerStats has the memory of UsesMemory.
func (r *Runtime) ContainerStats(_ context.Context, id string) (*runtimeapi.ContainerStats, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[id]
	if c == nil {
		return nil, gone(id)
	}
	return &runtimeapi.ContainerStats{Memory: r.usage(c.Metadata.Name)}, nil
}

// PodSandboxStats has the memory of its containers.
func (r *Runtime) PodSandboxStats(_ context.Context, id string) (*runtimeapi.PodSandboxStats, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sum uint64
	for _, c := range r.containers {
		if c.sandbox == id {
			sum += r.memory[c.Metadata.Name]
		}
	}
	return &runtimeapi.PodSandboxStats{Linux: &runtimeapi.LinuxPodSandboxStats{
		Memory: &runtimeapi.MemoryUsage{UsageBytes: &runtimeapi.UInt64Value{Value: sum}},
	}}, nil
}

func (r *Runtime) usage(name string) *runtimeapi.MemoryUsage {
	return &runtimeapi.MemoryUsage{UsageBytes: &runtimeapi.UInt64Value{Value: r.memory[name]}}
}
