package agent

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/network/plan"
)

// PodNetworkProblem is True on a Node while its pods cannot reach those of another node, or the machine uses addresses of the
// cluster for something else. It takes no pods away from the node, which NetworkUnavailable would: the others are reached.
const PodNetworkProblem corev1.NodeConditionType = "PodNetworkProblem"

// networkAnnotations tell the other nodes how this one reaches them.
func (a *agent) networkAnnotations() map[string]string {
	if a.Network == nil {
		return nil
	}
	return map[string]string{plan.Annotation: a.Network.Facts().String()}
}

// networkConditions say which nodes' pods cannot be reached, and what else has addresses of the cluster.
func (a *agent) networkConditions() []corev1.NodeCondition {
	if a.Network == nil {
		return nil
	}
	c := corev1.NodeCondition{
		Type: PodNetworkProblem, Status: corev1.ConditionFalse, Reason: "AllNodesReached", Message: "there is a way to the pods of all nodes",
	}
	problems, overlaps := a.Network.Problems(), a.Network.Overlaps()
	switch {
	case len(problems) > 0:
		c.Status, c.Reason = corev1.ConditionTrue, "NodesNotReached"
	case len(overlaps) > 0:
		c.Status, c.Reason = corev1.ConditionTrue, "RangesOverlap"
	default:
		return []corev1.NodeCondition{c}
	}
	c.Message = strings.Join(slices.Concat(problems, overlaps), "; ")
	return []corev1.NodeCondition{c}
}
