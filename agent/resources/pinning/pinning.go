package pinning

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/resources/topology"
	"github.com/setpoint-io/setpoint/agent/resources/topology/cpus"
	"github.com/setpoint-io/setpoint/agent/resources/topology/memory"
)

// Devices are those of device plugins.
type Devices interface {
	// Hints and PodHints say from which NUMA nodes of the machine a container or a pod can have its devices.
	Hints(pod *corev1.Pod, c *corev1.Container, machine topology.Nodes) topology.Hints
	PodHints(pod *corev1.Pod, machine topology.Nodes) topology.Hints
	// AllocateContainer gives a container its devices, once.
	AllocateContainer(ctx context.Context, pod *corev1.Pod, c *corev1.Container, near topology.Nodes) error
	Free(pod types.UID)
}

// Runtime has the containers.
type Runtime interface {
	ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error)
	UpdateContainerResources(ctx context.Context, id string, resources *runtimeapi.ContainerResources) error
}

// Config of New.
type Config struct {
	Settings
	// Dir has the state files; it exists.
	Dir string
	// Sys are the files of /sys, MemoryBytes is what the machine has.
	Sys         fs.FS
	MemoryBytes int64
	// Reserved are the CPU and memory that pods cannot have, with what eviction keeps free.
	Reserved corev1.ResourceList
	// Devices may be nil: there are none.
	Devices Devices
	Runtime Runtime
	Logger  *slog.Logger
}

// Manager knows who has what. It is safe for concurrent use.
type Manager struct {
	Config
	nodes  topology.Manager
	cpus   *cpus.Static   // nil: the policy is none
	memory *memory.Static // nil: the policy is None
	// turn is held during an admission whose hints must stay true.
	turn chan struct{}
	// changed makes Run look at the CPUs of containers. It holds one: more would say the same.
	changed chan struct{}
	counts  *counts

	mu          sync.Mutex
	cpuState    *cpus.State
	memoryState memory.State
}

// New reads what an earlier agent has left. The error is about the machine, the settings or these files.
func New(cfg Config) (*Manager, error) {
	m := &Manager{Config: cfg, turn: make(chan struct{}, 1), changed: make(chan struct{}, 1), counts: newCounts()}
	if cfg.Active() || !cfg.ReservedCPUs.IsEmpty() {
		machine, err := cfg.read(cfg.Sys, cfg.MemoryBytes)
		if err != nil {
			return nil, err
		}
		m.nodes = machine.nodes
		if m.cpus, m.memory, err = cfg.policies(machine, cfg.Reserved); err != nil {
			return nil, err
		}
	}
	m.counts.begin(m.cpus != nil, m.aligned())
	return m, m.restore()
}

// Allocate gives the containers of a pod what they need for themselves, and their devices, before anything of it runs. What they have they
// keep. On an error the pod has nothing; the error is for the pod's user, in upstream's words, and may have a Reason.
func (m *Manager) Allocate(ctx context.Context, pod *corev1.Pod) error {
	if m.aligned() {
		select {
		case m.turn <- struct{}{}:
			defer func() { <-m.turn }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	done := m.counts.admission()
	err := m.admit(ctx, pod)
	done(err)
	if err != nil {
		if m.Devices != nil {
			m.Devices.Free(pod.UID)
		}
		m.Free(pod.UID)
	}
	return err
}

func (m *Manager) admit(ctx context.Context, pod *corev1.Pod) error {
	var hint topology.Hint
	ofPod := m.aligned() && m.Scope == topology.OfPod
	if ofPod {
		var ok bool
		if hint, ok = m.nodes.Merge(m.podHints(pod)); !ok {
			return m.notAligned(topology.OfPod)
		}
	}
	for c := range topology.Containers(pod) {
		if m.aligned() && !ofPod {
			var ok bool
			if hint, ok = m.nodes.Merge(m.hints(pod, c)); !ok {
				return m.notAligned(topology.OfContainer)
			}
		}
		if err := m.give(ctx, pod, c, hint); err != nil {
			return err
		}
		if m.nodes.Policy == topology.SingleNUMANode && !ofPod {
			m.counts.aligned(topology.OfContainer, numaNode)
		}
	}
	if m.nodes.Policy == topology.SingleNUMANode && ofPod {
		m.counts.aligned(topology.OfPod, numaNode)
	}
	return m.save()
}

// affinityError is of a pod whose resources do not come from the same nodes.
type affinityError struct{}

func (affinityError) Error() string { return "Resources cannot be allocated with Topology locality" }

// Reason is upstream's.
func (affinityError) Reason() string { return "TopologyAffinityError" }

func (m *Manager) notAligned(scope topology.Scope) error {
	if m.nodes.Policy == topology.SingleNUMANode {
		m.counts.notAligned(scope, numaNode)
	}
	return affinityError{}
}

func (m *Manager) hints(pod *corev1.Pod, c *corev1.Container) []topology.Hints {
	var all []topology.Hints
	if m.Devices != nil {
		all = append(all, m.Devices.Hints(pod, c, m.nodes.Nodes))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cpus != nil {
		all = append(all, m.cpus.Hints(m.cpuState, pod, c))
	}
	if m.memory != nil {
		all = append(all, m.memory.Hints(m.memoryState, pod, c))
	}
	return all
}

func (m *Manager) podHints(pod *corev1.Pod) []topology.Hints {
	var all []topology.Hints
	if m.Devices != nil {
		all = append(all, m.Devices.PodHints(pod, m.nodes.Nodes))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cpus != nil {
		all = append(all, m.cpus.PodHints(m.cpuState, pod))
	}
	if m.memory != nil {
		all = append(all, m.memory.PodHints(m.memoryState, pod))
	}
	return all
}

// give gives one container what it needs, in upstream's order.
func (m *Manager) give(ctx context.Context, pod *corev1.Pod, c *corev1.Container, hint topology.Hint) error {
	if m.Devices != nil {
		if err := m.Devices.AllocateContainer(ctx, pod, c, hint.Nodes); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pin(pod, c, hint)
}

// pin gives the CPUs and the memory that a container wants and does not have. m.mu is held.
func (m *Manager) pin(pod *corev1.Pod, c *corev1.Container, hint topology.Hint) error {
	lacks := m.lacks(pod.UID, c.Name)
	if m.cpus != nil && lacks.cpus && cpus.Wanted(pod, c) > 0 {
		err := m.cpus.Allocate(m.cpuState, pod, c, hint.Nodes)
		m.counts.cpus(m.CPUOptions.FullPCPUsOnly, err)
		if err != nil {
			return unexpected(err)
		}
		if set, _ := m.cpuState.Of(pod.UID, c.Name); m.cpus.Topology.OneCache(set) {
			m.counts.aligned(topology.OfContainer, uncoreCache)
		}
	}
	if m.memory != nil && lacks.memory && memory.Wants(pod, c) {
		err := m.memory.Allocate(m.memoryState, pod, c, hint)
		m.counts.memory(err)
		return unexpected(err)
	}
	return nil
}

// unexpected has upstream's words for an error without a reason of its own.
func unexpected(err error) error {
	type reasoned interface {
		error
		Reason() string
	}
	if _, ok := errors.AsType[reasoned](err); err == nil || ok {
		return err
	}
	return fmt.Errorf("Allocate failed due to %w, which is unexpected", err)
}

// Free ends what a pod has. Call it when nothing of the pod runs any more.
func (m *Manager) Free(pod types.UID) {
	m.mu.Lock()
	had := m.free(pod)
	m.mu.Unlock()
	if had {
		m.saveOrWarn()
	}
}

// free is Free without writing. m.mu is held.
func (m *Manager) free(pod types.UID) bool {
	had := m.cpus != nil && m.cpuState.Free(pod)
	return m.memory != nil && m.memoryState.Free(pod) || had
}

// Retain ends what pods have that keep does not name.
func (m *Manager) Retain(keep func(types.UID) bool) {
	m.mu.Lock()
	had := false
	for _, pod := range m.pods() {
		if !keep(pod) {
			had = m.free(pod) || had
		}
	}
	m.mu.Unlock()
	if had {
		m.saveOrWarn()
	}
}

// pods have something. m.mu is held.
func (m *Manager) pods() []types.UID {
	var out []types.UID
	if m.cpus != nil {
		for pod := range m.cpuState.Exclusive {
			out = append(out, pod)
		}
	}
	for pod := range m.memoryState {
		out = append(out, pod)
	}
	return out
}

// Has reports whether a pod has anything for itself.
func (m *Manager) Has(pod types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cpus != nil && m.cpuState.Has(pod) || m.memoryState.Has(pod)
}
