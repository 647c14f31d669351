package pinning

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"github.com/setpoint-io/setpoint/agent/resources/topology/memory"
)

// CPUs are those that a container has for itself.
func (m *Manager) CPUs(pod types.UID, container string) []int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	set, _ := m.cpuState.Of(pod, container)
	return numbers(set)
}

// AllocatableCPUs are those that containers can have for themselves.
func (m *Manager) AllocatableCPUs() []int64 {
	if m.cpus == nil {
		return nil
	}
	return numbers(m.cpus.Allocatable())
}

// Memory is what a container has from NUMA nodes of its own.
func (m *Manager) Memory(pod types.UID, container string) []memory.Block {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.memoryState.Clone()[pod][container]
}

// AllocatableMemory is what each NUMA node can give.
func (m *Manager) AllocatableMemory() []memory.Block {
	if m.memory == nil {
		return nil
	}
	return m.memory.Allocatable()
}

// StaticCPUs and StaticMemory report whether Guaranteed pods have CPUs or memory that a resize would have to change.
func (m *Manager) StaticCPUs() bool { return m.cpus != nil }

// StaticMemory is described with StaticCPUs.
func (m *Manager) StaticMemory() bool { return m.memory != nil }

func numbers(set cpuset.CPUSet) []int64 {
	var out []int64
	for _, id := range set.List() {
		out = append(out, int64(id))
	}
	return out
}
