package pods

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubectl/pkg/util/qos"
)

// Pinning gives containers CPUs of their own and memory of certain NUMA nodes.
type Pinning interface {
	// Allocate gives a pod what it needs, and its devices, once. The error says why it cannot run here, and may have a Reason.
	Allocate(ctx context.Context, pod *corev1.Pod) error
	// Starting is called before each incarnation of a container is made.
	Starting(pod *corev1.Pod, c *corev1.Container) error
	// Pin says in the resources of a container where it runs; PinPod adapts those of its pod.
	Pin(pod types.UID, container string, to *runtimeapi.LinuxContainerResources)
	PinPod(pod types.UID, to *runtimeapi.LinuxContainerResources)
	// Reconcile is called when a container has started: the CPUs may have changed since it was made.
	Reconcile()
	// StaticCPUs and StaticMemory: what Guaranteed pods have does not change.
	StaticCPUs() bool
	StaticMemory() bool
	// Has reports whether a pod has anything for itself.
	Has(pod types.UID) bool
	// Free ends what a pod has.
	Free(pod types.UID)
	// Retain ends what pods have that keep does not name.
	Retain(keep func(types.UID) bool)
}

// allocateFor gives the pod its devices, and whatever else it has for itself.
func (m *Manager) allocateFor(ctx context.Context, pod *corev1.Pod) error {
	switch {
	case m.Pinning != nil:
		return m.Pinning.Allocate(ctx, pod)
	case m.Devices != nil:
		return m.Devices.Allocate(ctx, pod)
	default:
		return nil
	}
}

// reasonOf is an admission error's own reason, or else upstream's for all others.
func reasonOf(err error) string {
	if own, ok := errors.AsType[interface {
		error
		Reason() string
	}](err); ok {
		return own.Reason()
	}
	return reasonAdmission
}

// pin completes the resources of a container with what the machine decides.
func (w *worker) pin(container string, to *runtimeapi.LinuxContainerResources) {
	w.m.Swap.Ask(to)
	if w.m.Pinning != nil {
		w.m.Pinning.Pin(w.uid, container, to)
	}
}

func (w *worker) pinPod(to *runtimeapi.LinuxContainerResources) {
	if w.m.Pinning != nil {
		w.m.Pinning.PinPod(w.uid, to)
	}
}

// pinStarting notes that a container is about to be made, and says where it runs.
func (w *worker) pinStarting(pod *corev1.Pod, c *corev1.Container, cfg *runtimeapi.ContainerConfig) error {
	if w.m.Pinning != nil {
		if err := w.m.Pinning.Starting(pod, c); err != nil {
			return err
		}
	}
	w.pin(c.Name, cfg.Linux.Resources)
	return nil
}

// infeasible says why a resize of a pod can never be, "" if it can: CPUs and memory that are its own are not given anew. The messages
// are upstream's.
func (m *Manager) infeasible(pod *corev1.Pod, a *allocation) string {
	const message = "Resize is infeasible for Guaranteed Pods alongside %s Manager policy %q"
	switch {
	case m.Pinning == nil || qos.GetPodQOS(pod) != corev1.PodQOSGuaranteed:
		return ""
	case m.Pinning.StaticCPUs() && a.changes(pod, corev1.ResourceCPU):
		return fmt.Sprintf(message, "CPU", "static")
	case m.Pinning.StaticMemory() && a.changes(pod, corev1.ResourceMemory):
		return fmt.Sprintf(message, "Memory", "Static")
	default:
		return ""
	}
}

// changes reports whether a container wants another amount of a resource than it was allocated.
func (a *allocation) changes(pod *corev1.Pod, name corev1.ResourceName) bool {
	for _, c := range resizable(pod) {
		have := a.containers[c.Name]
		was, want := have.Requests[name], c.Resources.Requests[name]
		if was.Cmp(want) != 0 {
			return true
		}
	}
	return false
}
