package status

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// How upstream calls a restart of all containers (KEP-5532).
const (
	ReasonRestartingAll  = "RestartingAllContainers"
	MessageRestartingAll = "The container is removed because RestartAllContainers in place"
	reasonRestartStarted = "RestartAllContainersStarted"
)

// RestartsAll reports whether all containers of the pod start again after c ended with code.
func RestartsAll(c *corev1.Container, code int32) bool {
	return ruleFor(c, code) == corev1.ContainerRestartRuleActionRestartAllContainers
}

// RestartingAll reports whether the API was told that all containers start again, and not that they have been removed.
func RestartingAll(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.AllContainersRestarting && c.Status == corev1.ConditionTrue
	})
}

// mayRestartAll: a container of the pod has a rule that restarts all.
func mayRestartAll(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(slices.Concat(spec.InitContainers, spec.Containers), func(c corev1.Container) bool {
		return slices.ContainsFunc(c.RestartPolicyRules, func(r corev1.ContainerRestartRule) bool {
			return r.Action == corev1.ContainerRestartRuleActionRestartAllContainers
		})
	})
}

// restarting is the condition of pods that have such a rule.
func (in *Input) restarting(phase corev1.PodPhase) []corev1.PodCondition {
	if !mayRestartAll(&in.Pod.Spec) {
		return nil
	}
	c := corev1.PodCondition{Type: corev1.AllContainersRestarting, Status: truth(in.RestartsAll && !terminal(phase))}
	switch {
	case phase == corev1.PodSucceeded:
		c.Reason = reasonPodCompleted
	case phase == corev1.PodFailed:
		c.Reason = reasonPodFailed
	case in.RestartsAll:
		c.Reason, c.Message = reasonRestartStarted, "container exited with restart policy rule"
	}
	return []corev1.PodCondition{c}
}

// fromRestart is the status of a container that was removed because all start again, and reports whether it is one.
func (in *Input) fromRestart(s, old *corev1.ContainerStatus, waiting string) bool {
	run := in.Removed[s.Name]
	if run != nil && run.SandboxID != in.Runtime.ReadySandbox().GetId() || run == nil && !RestartingAll(in.Pod) {
		return false
	}
	s.State.Waiting = &corev1.ContainerStateWaiting{Reason: waiting}
	if in.RestartsAll {
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: ReasonRestartingAll, Message: MessageRestartingAll}
	}
	switch {
	case run != nil:
		s.RestartCount, s.LastTerminationState.Terminated = int32(run.RestartCount()), in.terminated(run)
	case old == nil:
	case old.State.Terminated != nil:
		s.RestartCount, s.LastTerminationState = old.RestartCount, old.State
	case old.State.Running != nil:
		s.RestartCount = old.RestartCount
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			Reason: ReasonRestartingAll, Message: MessageRestartingAll, ExitCode: exitUnknown, ContainerID: old.ContainerID,
		}
	default:
		s.RestartCount, s.LastTerminationState = old.RestartCount, old.LastTerminationState
	}
	return true
}

// wasInitializedBefore: a pod that begins anew has been initialized, as upstream.
func (in *Input) wasInitializedBefore() bool {
	return mayRestartAll(&in.Pod.Spec) && slices.ContainsFunc(in.Pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodInitialized && c.Status == corev1.ConditionTrue
	})
}
