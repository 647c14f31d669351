package explain

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/nodefirewall"
)

// packetsPass blames or clears the node of a pod; false: a firewall of its machine blocks the pod's packets. Pods on the machine's own
// network are not concerned.
func (e *explainer) packetsPass(f *finding, pod *corev1.Pod) bool {
	node, _ := get[*corev1.Node](e, Nodes.Named("", pod.Spec.NodeName))
	problem := nodefirewall.Of(node)
	if pod.Spec.HostNetwork || !problem.Any() {
		e.clearNode(f, pod)
		return true
	}
	f.blame(blockedBy(Nodes.of(node), problem))
	return false
}

// blockedBy is the problem that the agent of a node tells.
func blockedBy(node Object, p nodefirewall.Problem) Cause {
	change := "let packets from and to the range of pods pass in the firewall of that machine"
	if p.Command != "" {
		change += "; on that machine, as root:"
	}
	return Cause{Object: node, What: p.What, Change: change, Command: p.Command}
}
