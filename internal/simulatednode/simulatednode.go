// Package simulatednode knows the Nodes that have no machine: agent/simulated plays their agents.
//
// It owns the label of these Nodes, by which nodes, loops, the API and commands pass them over where a machine is needed. It imports
// nothing but the types of the API. Tested by those who call it.
package simulatednode

import corev1 "k8s.io/api/core/v1"

// Label marks such a Node; its value is the prefix of the names of those that were made together.
const Label = "setpoint.io/simulated"

// Is reports whether a Node has no machine.
func Is(node *corev1.Node) bool {
	_, is := node.Labels[Label]
	return is
}
