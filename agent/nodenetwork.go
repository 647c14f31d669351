package agent

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/net/hostfirewall"
	"github.com/setpoint-io/setpoint/agent/net/network/plan"
)

// PodNetworkProblem is True on a Node while its pods cannot reach those of another node, the machine uses addresses of the
// cluster for something else, or other software takes away again and again what pods need. It takes no pods away from the node,
// which NetworkUnavailable would: the others are reached.
const PodNetworkProblem corev1.NodeConditionType = "PodNetworkProblem"

// addresses are the Node's: with that of IPv6 once the cluster is known to have such addresses.
func (a *agent) addresses() []corev1.NodeAddress {
	if !a.dual() {
		return a.Addresses
	}
	return slices.Insert(slices.Clone(a.Addresses), 1, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.NodeIP6.String()})
}

// hostIPs are those of pods.
func (a *agent) hostIPs() []string {
	if !a.dual() {
		return []string{a.NodeIP.String()}
	}
	return []string{a.NodeIP.String(), a.NodeIP6.String()}
}

// dual reports whether this node has addresses of both families, and the cluster too.
func (a *agent) dual() bool {
	of := a.podNetwork.Load()
	return a.NodeIP6 != nil && of != nil && of.Pods6.IsValid()
}

// networkAnnotations tell the other nodes how this one reaches them, and those who trace packets what it refuses.
func (a *agent) networkAnnotations() map[string]string {
	if a.Network == nil {
		return nil
	}
	firewall := hostfirewall.Off
	if a.HostFirewall != nil {
		firewall = hostfirewall.On
	}
	return map[string]string{plan.Annotation: a.Network.Facts().String(), hostfirewall.Annotation: firewall}
}

// networkConditions say what other software does to the network, which nodes' pods cannot be reached, and what else has addresses of the
// cluster.
func (a *agent) networkConditions() []corev1.NodeCondition {
	if a.Network == nil {
		return nil
	}
	c := corev1.NodeCondition{
		Type: PodNetworkProblem, Status: corev1.ConditionFalse, Reason: "AllNodesReached", Message: "there is a way to the pods of all nodes",
	}
	problems, overlaps, changed := a.Network.Problems(), a.Network.Overlaps(), a.Upkeep.Problems()
	switch {
	case len(changed) > 0:
		c.Status, c.Reason = corev1.ConditionTrue, "MachineChanged"
	case len(problems) > 0:
		c.Status, c.Reason = corev1.ConditionTrue, "NodesNotReached"
	case len(overlaps) > 0:
		c.Status, c.Reason = corev1.ConditionTrue, "RangesOverlap"
	default:
		return []corev1.NodeCondition{c}
	}
	c.Message = strings.Join(slices.Concat(changed, problems, overlaps), "; ")
	return []corev1.NodeCondition{c}
}
