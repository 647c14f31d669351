package nettrace

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/clusterdns"
	"github.com/setpoint-io/setpoint/internal/nodefirewall"
)

const portOfDNS = 53

// firewall is what the agent of the pod's node has found blocked. Packets of pods on the machine's own network are not judged so.
func (t *tracer) firewall() nodefirewall.Problem {
	if t.from.Spec.HostNetwork {
		return nodefirewall.Problem{}
	}
	return nodefirewall.Of(t.node(t.from.Spec.NodeName))
}

// blocked adds the step at which the firewall of a node's machine stops packets, surely or maybe.
func (t *tracer) blocked(node string, p nodefirewall.Problem, verdict Verdict) {
	change := p.Command
	if change == "" {
		change = "let packets from and to the range of pods pass in the firewall of the machine"
	}
	t.steps = append(t.steps, Step{Step: "firewall", Verdict: verdict, Object: "node/" + node, Says: p.What, Change: change})
}

// asksDNS reports whether the pod's questions get to the DNS on its machine.
func (t *tracer) asksDNS() bool {
	s := t.Service(metav1.NamespaceSystem, clusterdns.Service)
	if p := t.firewall(); p.Input && (s == nil || s.Labels[proxyLabel] == clusterdns.ProxyName) {
		t.blocked(t.from.Spec.NodeName, p, Stops)
		return false
	}
	return true
}

// forwarded reports whether the pod's machine lets packets to another machine pass. Only maybe it stops those to its own pods.
func (t *tracer) forwarded(node string) bool {
	p := t.firewall()
	if !p.Forwarding {
		return true
	}
	verdict := Stops
	if node == t.from.Spec.NodeName {
		verdict = Unsure
	}
	t.blocked(t.from.Spec.NodeName, p, verdict)
	return verdict != Stops
}

// letIn reports whether packets get to the port of a node. Its agent has tried the port of the DNS; others may be open.
func (t *tracer) letIn(node *corev1.Node, port uint16) bool {
	own := node.Name == t.from.Spec.NodeName
	if !own && !t.forwarded(node.Name) {
		return false
	}
	p := nodefirewall.Of(node)
	if !p.Input || t.from.Spec.HostNetwork {
		return true
	}
	if own && port == portOfDNS {
		t.blocked(node.Name, p, Stops)
		return false
	}
	t.blocked(node.Name, p, Unsure)
	return true
}
