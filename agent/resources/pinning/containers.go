package pinning

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/resources/topology"
	"github.com/setpoint-io/setpoint/agent/runtime/observed"
)

// noQuota is CRI's word for no limit of CPU time.
const noQuota = -1

// Starting is called before each incarnation of a container is made: what earlier init containers have had of memory is free from then
// on. A container of which the record was lost gets anew what it needs.
func (m *Manager) Starting(pod *corev1.Pod, c *corev1.Container) error {
	m.mu.Lock()
	before := m.lacks(pod.UID, c.Name)
	err := m.pin(pod, c, topology.Hint{})
	changed := m.lacks(pod.UID, c.Name) != before
	if m.memory != nil {
		changed = m.memoryState.Started(pod, c.Name) || changed
	}
	m.mu.Unlock()
	if err == nil && changed {
		err = m.save()
	}
	return err
}

// lack is what a container does not have for itself.
type lack struct{ cpus, memory bool }

// lacks tells it of a container. m.mu is held.
func (m *Manager) lacks(pod types.UID, container string) lack {
	_, has := m.cpuState.Of(pod, container)
	return lack{cpus: !has, memory: m.memoryState.Nodes(pod, container) == 0}
}

// Pin says in a container's resources on which CPUs it runs and from which nodes its memory is. CPUs of its own it may use all the time.
func (m *Manager) Pin(pod types.UID, container string, to *runtimeapi.LinuxContainerResources) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cpus != nil {
		to.CpusetCpus = m.cpus.For(m.cpuState, pod, container).String()
		if _, own := m.cpuState.Of(pod, container); own {
			to.CpuQuota = noQuota
		}
	}
	if nodes := m.memoryState.Nodes(pod, container); nodes != 0 {
		to.CpusetMems = joined(nodes)
	}
}

func joined(nodes topology.Nodes) string {
	var ids []string
	for _, id := range nodes.IDs() {
		ids = append(ids, strconv.Itoa(id))
	}
	return strings.Join(ids, ",")
}

// PinPod takes the limit of CPU time from a pod of which a container has CPUs of its own.
func (m *Manager) PinPod(pod types.UID, to *runtimeapi.LinuxContainerResources) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if to != nil && m.cpus != nil && m.cpuState.Has(pod) {
		to.CpuQuota = noQuota
	}
}

// Reconcile has the CPUs of running containers looked at.
func (m *Manager) Reconcile() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// Run moves running containers to the CPUs that they should have, until ctx ends.
func (m *Manager) Run(ctx context.Context) {
	if m.cpus == nil {
		return
	}
	every := m.ReconcileEvery
	if every <= 0 {
		every = reconcileEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	written := map[string]string{}
	for {
		if err := m.reconcile(ctx, written); err != nil && ctx.Err() == nil {
			m.Logger.Warn("cannot move all containers to their CPUs", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-m.changed:
		}
	}
}

// reconcile writes the CPUs of each container that are not yet written, by the containers' ids.
func (m *Manager) reconcile(ctx context.Context, written map[string]string) error {
	running := &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}}
	list, err := m.Runtime.ListContainers(ctx, running)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, c := range list {
		uid, name := types.UID(c.Labels[observed.LabelPodUID]), c.Labels[observed.LabelContainerName]
		m.mu.Lock()
		want := m.cpus.For(m.cpuState, uid, name).String()
		m.mu.Unlock()
		seen[c.Id] = true
		if uid == "" || written[c.Id] == want {
			continue
		}
		update := &runtimeapi.ContainerResources{Linux: &runtimeapi.LinuxContainerResources{CpusetCpus: want}}
		if failed := m.Runtime.UpdateContainerResources(ctx, c.Id, update); failed != nil {
			err = fmt.Errorf("container %s of pod %s: %w", name, uid, failed)
			continue
		}
		written[c.Id] = want
	}
	for id := range written {
		if !seen[id] {
			delete(written, id)
		}
	}
	return err
}
