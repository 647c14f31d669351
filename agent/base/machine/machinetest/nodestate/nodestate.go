package nodestate

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Unwell says what is wrong with nodes, one line for each condition that a healthy node has not, and "all nodes are well" if there is none.
// A test that waits for pods and sees none says this first: it is the usual reason.
func Unwell(nodes []corev1.Node) string {
	var lines []string
	for _, node := range nodes {
		for _, c := range node.Status.Conditions {
			if well(c) {
				continue
			}
			lines = append(lines, fmt.Sprintf("node %s: %s=%s %s: %s", node.Name, c.Type, c.Status, c.Reason, c.Message))
		}
	}
	switch {
	case len(nodes) == 0:
		return "there is no node"
	case len(lines) == 0:
		return "all nodes are well"
	default:
		return strings.Join(lines, "\n")
	}
}

// well: Ready is to be true, pressures and what else there is are to be false.
func well(c corev1.NodeCondition) bool {
	if c.Type == corev1.NodeReady {
		return c.Status == corev1.ConditionTrue
	}
	return c.Status == corev1.ConditionFalse
}
