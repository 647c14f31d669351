package pods

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/pods/status"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// Devices are those of device plugins.
type Devices interface {
	// Manages reports whether a resource is a plugin's, or was.
	Manages(name corev1.ResourceName) bool
	// Allocate gives a pod what it asks for, once. The error says why it cannot run here.
	Allocate(ctx context.Context, pod *corev1.Pod) error
	// Given is what a container gets with its devices, asked before each of its incarnations.
	Given(ctx context.Context, pod *corev1.Pod, c *corev1.Container) (podconfig.Given, error)
	// Status is the health of a container's devices.
	Status(pod types.UID, container string) []corev1.ResourceStatus
	// Has reports whether a pod has any.
	Has(pod types.UID) bool
	// Free ends what a pod has.
	Free(pod types.UID)
	// Retain ends what pods have that keep does not name.
	Retain(keep func(types.UID) bool)
}

// reasonAdmission is upstream's for a pod that does not get its devices.
const reasonAdmission = "UnexpectedAdmissionError"

// allocateDevices reports whether the pod has its devices, CPUs and memory; if not, it fails, or waits if it has run before. It is part of
// the task that makes the sandbox, so a plugin that hangs keeps only its pods waiting.
func (w *worker) allocateDevices(ctx context.Context, v view) bool {
	err := w.m.allocateFor(ctx, v.pod)
	switch {
	case err == nil:
		return true
	case ctx.Err() != nil:
	case ranBefore(v.pod):
		w.sandboxFailed(ctx, v, reasonOf(err), err.Error(), err)
	default:
		w.logger.Warn("pod does not get what it needs for itself", "err", err)
		w.refuse(v.pod, &status.Rejection{Reason: reasonOf(err), Message: "Pod was rejected: " + err.Error()})
	}
	return false
}

// freeDevices gives back the devices, CPUs and memory of a pod of which no container runs or will.
func (w *worker) freeDevices(s step) {
	if !s.over || w.task != nil {
		return
	}
	if w.m.Devices != nil {
		w.m.Devices.Free(w.uid)
	}
	if w.m.Pinning != nil {
		w.m.Pinning.Free(w.uid)
	}
}

func (w *worker) hasDevices() bool {
	return w.m.Devices != nil && w.m.Devices.Has(w.uid) || w.m.Pinning != nil && w.m.Pinning.Has(w.uid)
}

// given is what drivers of devices add to a container.
func (w *worker) given(ctx context.Context, pod *corev1.Pod, c *corev1.Container) (given podconfig.Given, err error) {
	if w.m.Devices != nil {
		if given, err = w.m.Devices.Given(ctx, pod, c); err != nil {
			return given, err
		}
	}
	if w.m.Claims != nil {
		more, err := w.m.Claims.Given(pod, c)
		if err != nil {
			return given, err
		}
		given.Merge(more)
	}
	return given, nil
}

// deviceStatus completes a pod's status with the health of its devices. Of a container whose devices were given back the last word stays:
// it may tell why the pod has failed.
func (w *worker) deviceStatus(pod *corev1.Pod, s *corev1.PodStatus) {
	for i := range s.ContainerStatuses { // and not of init containers, as upstream
		s.ContainerStatuses[i].AllocatedResourcesStatus = w.healthOf(pod, s.ContainerStatuses[i].Name)
	}
}

func (w *worker) healthOf(pod *corev1.Pod, container string) []corev1.ResourceStatus {
	var out []corev1.ResourceStatus
	if w.m.Devices != nil {
		out = w.m.Devices.Status(w.uid, container)
	}
	if c := findContainer(pod, container); w.m.Claims != nil && c != nil {
		out = append(out, w.m.Claims.Status(pod, c)...)
	}
	if old := containerStatus(pod, container); out == nil && old != nil {
		return old.AllocatedResourcesStatus
	}
	return out
}
