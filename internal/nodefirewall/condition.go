package nodefirewall

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Type is True on a Node whose machine drops or refuses packets that its pods need. It is not there before that was looked at.
const Type corev1.NodeConditionType = "FirewallProblem"

// Reasons of the condition.
const (
	// InputBlocked: packets to the machine itself, such as those to the cluster's DNS.
	InputBlocked = "InputBlocked"
	// ForwardingBlocked: packets that the machine is to forward, to other nodes' pods and to the outside.
	ForwardingBlocked         = "ForwardingBlocked"
	InputAndForwardingBlocked = "InputAndForwardingBlocked"
	PacketsPass               = "PacketsPass"
)

// Problem is what is blocked; the zero Problem is none.
type Problem struct {
	Input, Forwarding bool
	// What says what is blocked, what that means for pods, and who does it.
	What string
	// Command ends it; empty if none is known.
	Command string
}

// Any reports whether something is blocked.
func (p Problem) Any() bool { return p.Input || p.Forwarding }

// mend is between the two parts of a message.
const mend = "; this ends it: "

// Message is the problem as the condition and events tell it.
func (p Problem) Message() string {
	if p.Command == "" {
		return p.What
	}
	return p.What + mend + p.Command
}

// Condition tells the problem.
func (p Problem) Condition() corev1.NodeCondition {
	c := corev1.NodeCondition{Type: Type, Status: corev1.ConditionTrue, Message: p.Message()}
	switch {
	case p.Input && p.Forwarding:
		c.Reason = InputAndForwardingBlocked
	case p.Input:
		c.Reason = InputBlocked
	case p.Forwarding:
		c.Reason = ForwardingBlocked
	default:
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, PacketsPass, "this machine lets packets of pods to itself and beyond it pass"
	}
	return c
}

// Of is the problem that a Node tells; none if it tells nothing. A nil Node has none.
func Of(node *corev1.Node) (p Problem) {
	if node == nil {
		return p
	}
	for _, c := range node.Status.Conditions {
		if c.Type == Type && c.Status == corev1.ConditionTrue {
			p.Input = c.Reason == InputBlocked || c.Reason == InputAndForwardingBlocked
			p.Forwarding = c.Reason == ForwardingBlocked || c.Reason == InputAndForwardingBlocked
			p.What, p.Command, _ = strings.Cut(c.Message, mend)
		}
	}
	return p
}
