package agent

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/network/plan"
)

// PodNetworkProblem is True on a Node while its pods cannot reach those of another node. It takes no pods away from the node,
// which NetworkUnavailable would: the others are reached.
const PodNetworkProblem corev1.NodeConditionType = "PodNetworkProblem"

// networkAnnotations tell the other nodes how this one reaches them.
func (a *agent) networkAnnotations() map[string]string {
	if a.Network == nil {
		return nil
	}
	return map[string]string{plan.Annotation: a.Network.Facts().String()}
}

// networkConditions say which nodes' pods cannot be reached.
func (a *agent) networkConditions() []corev1.NodeCondition {
	if a.Network == nil {
		return nil
	}
	c := corev1.NodeCondition{
		Type: PodNetworkProblem, Status: corev1.ConditionFalse, Reason: "AllNodesReached", Message: "there is a way to the pods of all nodes",
	}
	if problems := a.Network.Problems(); len(problems) > 0 {
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, "NodesNotReached", strings.Join(problems, "; ")
	}
	return []corev1.NodeCondition{c}
}
