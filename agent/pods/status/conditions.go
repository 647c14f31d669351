package status

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	reasonPodCompleted   = "PodCompleted"
	reasonPodFailed      = "PodFailed"
	reasonNotReady       = "ContainersNotReady"
	reasonNotInitialized = "ContainersNotInitialized"
	reasonGatesNotReady  = "ReadinessGatesNotReady"
)

// owned are the condition types a kubelet writes.
var owned = []corev1.PodConditionType{
	corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled,
	corev1.PodResizePending, corev1.PodResizeInProgress, corev1.AllContainersRestarting,
}

// conditions are the owned ones, with transition times kept from the old status.
func (in *Input) conditions(s *corev1.PodStatus) []corev1.PodCondition {
	containers := in.containersReady(s)
	out := []corev1.PodCondition{
		{Type: corev1.PodReadyToStartContainers, Status: truth(in.Runtime.ReadySandbox() != nil && len(s.PodIPs) > 0 && !in.Ended)},
		in.initialized(s),
		in.podReady(containers),
		containers,
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
	}
	out = append(out, in.restarting(s.Phase)...)
	if in.rejected() && in.Rejected.Disrupted {
		out = append(out, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
			Reason: corev1.PodReasonTerminationByKubelet, Message: in.Rejected.Message})
	}
	for i := range out {
		out[i].ObservedGeneration = in.Pod.Generation
	}
	out = append(out, in.Resize.conditions()...)
	for i := range out {
		out[i].LastTransitionTime = metav1.NewTime(in.Now)
		for _, old := range in.Pod.Status.Conditions {
			if old.Type == out[i].Type && old.Status == out[i].Status {
				out[i].LastTransitionTime = old.LastTransitionTime
			}
		}
	}
	return out
}

func truth(b bool) corev1.ConditionStatus {
	if b {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}

func no(t corev1.PodConditionType, reason, message string) corev1.PodCondition {
	return corev1.PodCondition{Type: t, Status: corev1.ConditionFalse, Reason: reason, Message: message}
}

func (in *Input) initialized(s *corev1.PodStatus) corev1.PodCondition {
	if s.Phase == corev1.PodSucceeded {
		return corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, Reason: reasonPodCompleted}
	}
	var incomplete []string
	for i := range in.Pod.Spec.InitContainers {
		c := &in.Pod.Spec.InitContainers[i]
		if !initDone(find(s.InitContainerStatuses, c.Name), IsSidecar(c)) && !in.anyMainSeen() {
			incomplete = append(incomplete, c.Name)
		}
	}
	if len(incomplete) > 0 && !in.wasInitializedBefore() {
		return no(
			corev1.PodInitialized,
			reasonNotInitialized,
			fmt.Sprintf("containers with incomplete status: [%s]", strings.Join(incomplete, " ")),
		)
	}
	return corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}
}

func initDone(s *corev1.ContainerStatus, sidecar bool) bool {
	if s == nil {
		return false
	}
	if sidecar {
		return s.Started != nil && *s.Started
	}
	return s.Ready
}

// anyMainSeen: a main container exists, hence initialisation was complete once.
func (in *Input) anyMainSeen() bool {
	for i := range in.Pod.Spec.Containers {
		if c := in.Runtime.Latest(in.Pod.Spec.Containers[i].Name); c != nil && c.SandboxID == in.Runtime.Sandbox().GetId() {
			return true
		}
	}
	return false
}

func (in *Input) containersReady(s *corev1.PodStatus) corev1.PodCondition {
	switch s.Phase {
	case corev1.PodSucceeded:
		return no(corev1.ContainersReady, reasonPodCompleted, "")
	case corev1.PodFailed:
		return no(corev1.ContainersReady, reasonPodFailed, "")
	}
	var unready []string
	for i := range in.Pod.Spec.InitContainers {
		c := &in.Pod.Spec.InitContainers[i]
		if st := find(s.InitContainerStatuses, c.Name); IsSidecar(c) && !st.Ready {
			unready = append(unready, c.Name)
		}
	}
	for _, st := range s.ContainerStatuses {
		if !st.Ready {
			unready = append(unready, st.Name)
		}
	}
	if len(unready) > 0 {
		return no(corev1.ContainersReady, reasonNotReady, fmt.Sprintf("containers with unready status: [%s]", strings.Join(unready, " ")))
	}
	return corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}
}

// podReady adds the readiness gates to the containers' verdict.
func (in *Input) podReady(containers corev1.PodCondition) corev1.PodCondition {
	if containers.Status != corev1.ConditionTrue {
		containers.Type = corev1.PodReady
		return containers
	}
	var closed []string
	for _, gate := range in.Pod.Spec.ReadinessGates {
		i := slices.IndexFunc(in.Pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == gate.ConditionType })
		switch {
		case i < 0:
			closed = append(
				closed,
				fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", string(gate.ConditionType)),
			)
		case in.Pod.Status.Conditions[i].Status != corev1.ConditionTrue:
			closed = append(
				closed,
				fmt.Sprintf(
					"the status of pod readiness gate %q is not %q, but %v",
					string(gate.ConditionType),
					corev1.ConditionTrue,
					in.Pod.Status.Conditions[i].Status,
				),
			)
		}
	}
	if len(closed) > 0 {
		return no(corev1.PodReady, reasonGatesNotReady, strings.Join(closed, ", "))
	}
	return corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
}
