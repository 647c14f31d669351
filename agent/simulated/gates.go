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

// reasonLost is the control plane's, for a pod that it has marked as not ready because its node did not report.
const reasonLost = "NodeLost"

// readinessMoved says whether a running pod is shown as ready while it is not, or the reverse: a gate has moved, or the pod's node
// was lost, and is back. While it is lost, the control plane knows better. What others say of a pod without gates stays.
func (f *fleet) readinessMoved(pod *corev1.Pod) bool {
	shown, is := conditionOf(pod, corev1.PodReady), ready(pod)
	if shown != nil && shown.Status == is.Status && shown.Message == is.Message {
		return false
	}
	if len(pod.Spec.ReadinessGates) == 0 && (shown == nil || shown.Reason != reasonLost) {
		return false
	}
	node, err := f.nodes.Get(pod.Spec.NodeName)
	return err == nil && isReady(node)
}

func conditionOf(pod *corev1.Pod, of corev1.PodConditionType) *corev1.PodCondition {
	if i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == of }); i >= 0 {
		return &pod.Status.Conditions[i]
	}
	return nil
}
