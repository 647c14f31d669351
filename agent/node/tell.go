package node

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/base/events"
)

// statusIsNow are the reasons of the events about a condition, by what it is now: those of a kubelet.
var statusIsNow = map[corev1.NodeConditionType]map[corev1.ConditionStatus]string{
	corev1.NodeReady:          {corev1.ConditionTrue: "NodeReady", corev1.ConditionFalse: "NodeNotReady"},
	corev1.NodeMemoryPressure: {corev1.ConditionTrue: "NodeHasInsufficientMemory", corev1.ConditionFalse: "NodeHasSufficientMemory"},
	corev1.NodeDiskPressure:   {corev1.ConditionTrue: "NodeHasDiskPressure", corev1.ConditionFalse: "NodeHasNoDiskPressure"},
	corev1.NodePIDPressure:    {corev1.ConditionTrue: "NodeHasInsufficientPID", corev1.ConditionFalse: "NodeHasSufficientPID"},
}

// tellStart says that this agent keeps the Node from now on.
func (k *keeper) tellStart() {
	if k.Events != nil {
		k.Events.Event(k.last, corev1.EventTypeNormal, events.NodeStarting, "Starting kubelet.")
	}
	if k.Events != nil && k.Enforced {
		k.Events.Event(k.last, corev1.EventTypeNormal, events.NodeAllocatableEnforced, "Updated Node Allocatable limit across pods")
	}
}

// tell says what is different in the Node's status now from what it was: its conditions, and another boot of the machine.
func (k *keeper) tell(was, is *corev1.Node) {
	if k.Events == nil {
		return
	}
	for _, c := range is.Status.Conditions {
		before, reason := statusOf(was, c.Type), statusIsNow[c.Type][c.Status]
		beginning := before == "" && reason == "NodeNotReady" // as every node begins
		if reason != "" && before != c.Status && !beginning {
			k.tellStatus(is, reason)
		}
	}
	before, now := was.Status.NodeInfo.BootID, is.Status.NodeInfo.BootID
	if before != "" && before != now {
		k.Events.Eventf(is, corev1.EventTypeWarning, "Rebooted", "Node %s has been rebooted, boot id: %s", k.Name, now)
	}
}

// saw takes over the Node as the API has it now, with what others have changed of it.
func (k *keeper) saw(node *corev1.Node) {
	k.tellSchedulable(k.last, node)
	k.last = node
}

// tellSchedulable says whether somebody has cordoned the Node, or ended that.
func (k *keeper) tellSchedulable(was, is *corev1.Node) {
	if k.Events == nil || was.Spec.Unschedulable == is.Spec.Unschedulable {
		return
	}
	if is.Spec.Unschedulable {
		k.tellStatus(is, "NodeNotSchedulable")
		return
	}
	k.tellStatus(is, "NodeSchedulable")
}

func (k *keeper) tellStatus(node *corev1.Node, reason string) {
	k.Events.Eventf(node, corev1.EventTypeNormal, reason, "Node %s status is now: %s", k.Name, reason)
}

// statusOf is that of a condition; "" if the Node has none of the type.
func statusOf(node *corev1.Node, of corev1.NodeConditionType) corev1.ConditionStatus {
	for _, c := range node.Status.Conditions {
		if c.Type == of {
			return c.Status
		}
	}
	return ""
}
