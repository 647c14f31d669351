package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
)

// The classes that every cluster has, with their values.
const (
	systemClusterCritical         = "system-cluster-critical"
	systemNodeCritical            = "system-node-critical"
	systemClusterCriticalPriority = int32(2000000000)
	systemNodeCriticalPriority    = int32(2000001000)
)

// priority resolves priorityClassName to a number. Only the two built-in classes
// exist until the kind PriorityClass is served.
type priority struct{ onPodCreate }

// Admit implements admission.MutationInterface.
func (priority) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod := newPod(a)
	if pod == nil {
		return nil
	}
	value, err := priorityOf(pod.Spec.PriorityClassName)
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	if pod.Spec.Priority != nil && *pod.Spec.Priority != value {
		return admission.NewForbidden(a, fmt.Errorf("the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name", *pod.Spec.Priority, value))
	}
	pod.Spec.Priority = &value
	if pod.Spec.PreemptionPolicy == nil {
		pod.Spec.PreemptionPolicy = new(corev1.PreemptLowerPriority)
	}
	return nil
}

func priorityOf(class string) (int32, error) {
	switch class {
	case "":
		return 0, nil
	case systemClusterCritical:
		return systemClusterCriticalPriority, nil
	case systemNodeCritical:
		return systemNodeCriticalPriority, nil
	default:
		return 0, fmt.Errorf("no PriorityClass with name %s was found", class)
	}
}
