package nettrace

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/net/hostfirewall"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

// toMachine goes to a node's own address: a node port, or a process of the machine.
func (t *tracer) toMachine(node *corev1.Node, address netip.Addr, port uint16) error {
	own := t.sourceTo(address)
	source, lookup := own, t.lookup
	if node.Name != t.from.Spec.NodeName {
		if !t.allowed("egress", netip.AddrPortFrom(address, port), own) {
			return nil
		}
		lookup = t.seenFrom(node.Name)
		source = nodeAddress(t.node(t.from.Spec.NodeName), address)
	}
	if to, holder, ok := lookup.At(t.at(everywhere(address), port)); ok {
		if to.KeepsSource && source != own { // as from outside of the cluster
			to.Endpoints, to.Silent = to.Outside, len(to.Outside) == 0
		} else if source != own {
			source = nodeAddress(node, address)
		}
		return t.translated(to, t.Service(holder.Namespace, holder.Name), source)
	}
	if t.refused(node, port) || !t.letIn(node, port) {
		return nil
	}
	t.pass("node", "node/"+node.Name, "no Service has the port %d there, so a process of the machine answers, or none", port)
	return nil
}

// refused reports whether the node's firewall keeps pods from the port. A port may be a Gateway's, if the node serves some.
func (t *tracer) refused(node *corev1.Node, port uint16) bool {
	asked := hostfirewall.PortOf(t.to.Protocol, port)
	if node.Annotations[hostfirewall.Annotation] != hostfirewall.On || slices.Contains(t.open(node), asked) {
		return false
	}
	step := Step{
		Step: "node", Object: "node/" + node.Name, Verdict: Stops, Says: fmt.Sprintf("its firewall keeps pods from the port %d: no Service leads there", port),
		Change: "make it an endpoint of a Service, or start the agent with --host-firewall=false",
	}
	if node.Labels[reserved.IngressLabel] != "" {
		step.Verdict = Unsure
		step.Says = fmt.Sprintf("its firewall keeps pods from the port %d, unless it is a Gateway's: no Service leads there", port)
	}
	t.steps = append(t.steps, step)
	return true
}

// open are the ports that the node's firewall leaves pods, as far as the API tells.
func (t *tracer) open(node *corev1.Node) []hostfirewall.Port {
	plain, secure, _ := reserved.IngressPorts(node)
	listening := hostfirewall.AgentPorts(int(node.Status.DaemonEndpoints.KubeletEndpoint.Port), true, plain, secure)
	return hostfirewall.World{
		Own: internalAddresses(node), Listening: listening, Slices: t.EndpointSlices, Services: t.World.Services,
		Pods: slices.DeleteFunc(slices.Clone(t.Pods), func(p *corev1.Pod) bool { return p.Spec.NodeName != node.Name }),
	}.Ports()
}
