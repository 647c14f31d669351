package status

import (
	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/setpoint-io/setpoint/agent/runtime/observed"
)

// Pending says why a pod does not get what its spec asks for.
type Pending struct {
	// Reason is Deferred or Infeasible.
	Reason, Message string
	// Generation of the pod that asked.
	Generation int64
}

// Resize is how far the change of a pod's CPU and memory is (KEP-1287). The zero value means that nothing changes.
type Resize struct {
	Pending *Pending
	// InProgress: what was allocated is not yet what the containers have. Error is what is in the way, if anything is.
	InProgress bool
	Error      string
	// Generation of the pod whose spec was allocated.
	Generation int64
	// Actuated are what a running container and the pod have; nil: what was allocated.
	Actuated func(c *observed.Container) *corev1.ResourceRequirements
	// ActuatedPod is the pod with what it has; nil: what was allocated.
	ActuatedPod *corev1.Pod
}

// conditions are there while they are true.
func (r *Resize) conditions() []corev1.PodCondition {
	var out []corev1.PodCondition
	if p := r.Pending; p != nil {
		out = append(out, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue,
			Reason: p.Reason, Message: p.Message, ObservedGeneration: p.Generation})
	}
	if r.InProgress {
		c := corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue, ObservedGeneration: r.Generation}
		if r.Error != "" {
			c.Reason, c.Message = corev1.PodReasonError, r.Error
		}
		out = append(out, c)
	}
	return out
}

// resources fills in what a container was allocated and what it has.
func (in *Input) resources(s *corev1.ContainerStatus, c *corev1.Container, latest *observed.Container) {
	s.AllocatedResources, s.Resources = c.Resources.Requests, c.Resources.DeepCopy()
	if s.State.Running != nil && in.Resize.Actuated != nil {
		if have := in.Resize.Actuated(latest); have != nil {
			s.Resources = have
		}
	}
}

// podResources fills in what the pod was allocated and what it has.
func (in *Input) podResources(s *corev1.PodStatus) {
	opts := resourcehelper.PodResourcesOptions{}
	s.AllocatedResources = resourcehelper.PodRequests(in.Pod, opts)
	has := in.Resize.ActuatedPod
	if has == nil {
		has = in.Pod
	}
	s.Resources = &corev1.ResourceRequirements{Requests: resourcehelper.PodRequests(has, opts), Limits: resourcehelper.PodLimits(has, opts)}
}
