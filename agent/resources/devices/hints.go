package devices

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/setpoint-io/setpoint/agent/resources/devices/ledger"
	"github.com/setpoint-io/setpoint/agent/resources/topology"
)

// Hints say from which NUMA nodes of the machine a container can have the devices that it asks for.
func (m *Manager) Hints(pod *corev1.Pod, c *corev1.Container, machine topology.Nodes) topology.Hints {
	return m.hints(m.wants(pod, c), machine)
}

// PodHints say it of all devices of a pod.
func (m *Manager) PodHints(pod *corev1.Pod, machine topology.Nodes) topology.Hints {
	limits := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{ExcludeOverhead: true})
	whole := &corev1.Container{Resources: corev1.ResourceRequirements{Limits: limits}}
	return m.hints(m.wants(pod, whole), machine)
}

func (m *Manager) hints(wants []ledger.Want, machine topology.Nodes) topology.Hints {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := topology.Hints{}
	for _, want := range wants {
		var known map[string]ledger.Device
		if s := m.stocks[want.Resource]; s != nil {
			known = s.devices
		}
		out[want.Resource] = m.ledger.Hints(want, known, machine)
	}
	return out
}

// AllocateContainer gives a container the devices that it asks for, from these NUMA nodes as far as they have them; none: from any. Those
// that it has it keeps. On an error it may have some: call Free.
func (m *Manager) AllocateContainer(ctx context.Context, pod *corev1.Pod, c *corev1.Container, near topology.Nodes) error {
	for _, want := range m.wants(pod, c) {
		if err := m.give(ctx, want, near); err != nil {
			return fmt.Errorf("Allocate failed due to %w, which is unexpected", err)
		}
	}
	return nil
}

// wants are what a container asks of plugins, sorted by resource. Other extended resources are somebody else's.
func (m *Manager) wants(pod *corev1.Pod, c *corev1.Container) []ledger.Want {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []ledger.Want
	for _, name := range slices.Sorted(maps.Keys(c.Resources.Limits)) {
		amount, resource := c.Resources.Limits[name], string(name)
		if amount.Value() > 0 && m.manages(resource) {
			out = append(out, ledger.Want{Pod: pod, Container: c.Name, Resource: resource, Count: int(amount.Value())})
		}
	}
	return out
}
