package simulated

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// reasonGates is the kubelet's, for a pod that is ready but for its readiness gates.
const reasonGates = "ReadinessGatesNotReady"

// ready is whether the pod's readiness gates are open; its containers are ready.
func ready(pod *corev1.Pod) corev1.PodCondition {
	var closed []string
	for _, gate := range pod.Spec.ReadinessGates {
		switch c := conditionOf(pod, gate.ConditionType); {
		case c == nil:
			closed = append(closed, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		case c.Status != corev1.ConditionTrue:
			closed = append(closed, fmt.Sprintf("the status of pod readiness gate %q is not %q, but %v", gate.ConditionType, corev1.ConditionTrue, c.Status))
		}
	}
	if len(closed) > 0 {
		return corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: reasonGates, Message: strings.Join(closed, ", ")}
	}
	return corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
}

// gatesMoved says whether a running pod is shown as ready while a gate is closed, or the reverse.
func gatesMoved(pod *corev1.Pod) bool {
	if len(pod.Spec.ReadinessGates) == 0 {
		return false
	}
	shown, is := conditionOf(pod, corev1.PodReady), ready(pod)
	return shown == nil || shown.Status != is.Status || shown.Message != is.Message
}

func conditionOf(pod *corev1.Pod, of corev1.PodConditionType) *corev1.PodCondition {
	if i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == of }); i >= 0 {
		return &pod.Status.Conditions[i]
	}
	return nil
}
