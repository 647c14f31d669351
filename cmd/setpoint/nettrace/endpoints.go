package nettrace

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/agent/net/network/plan"
	policyplan "github.com/setpoint-io/setpoint/agent/net/policy/plan"
	"github.com/setpoint-io/setpoint/apiserver/explain"
)

type labelSet = labels.Set

// endpointsMax is how many endpoints are followed; the others are counted.
const endpointsMax = 8

func (w *World) behind(s *corev1.Service) []*discoveryv1.EndpointSlice {
	return w.Slices(s.Namespace, s.Name)
}

// translated goes on to the endpoints of a Service's address.
func (t *tracer) translated(to network.Service, s *corev1.Service, source netip.Addr) error {
	inside := func(p netip.Prefix) bool { return p.Contains(source) }
	switch {
	case len(to.Sources) > 0 && !slices.ContainsFunc(to.Sources, inside):
		t.stop("service", serviceName(s), fmt.Sprintf("its source ranges do not have %s", source), "add the address to loadBalancerSourceRanges")
		return nil
	case len(to.Endpoints) == 0 && to.Silent:
		t.stop("service", serviceName(s), "its traffic policy is Local, and it has no ready endpoint on the node that is asked",
			"set internalTrafficPolicy and externalTrafficPolicy to Cluster, or run a pod of it on each node")
		return nil
	case len(to.Endpoints) == 0 && t.hasOthers(s, familyOf(to.Address.Addr())):
		t.stop("service", serviceName(s), "none of its ready endpoints has an address of "+familyOf(to.Address.Addr()),
			"run its pods on nodes whose spec.podCIDRs have both families")
		return nil
	case len(to.Endpoints) == 0:
		t.withoutEndpoints(s)
		return nil
	}
	t.pass("service", serviceName(s), "%s leads to %s", to.Address, counted(len(to.Endpoints)))
	return t.toEach(to.Endpoints, source)
}

func counted(endpoints int) string {
	if endpoints == 1 {
		return "1 endpoint"
	}
	return fmt.Sprintf("%d endpoints", endpoints)
}

// toEach follows several endpoints, of which a connection gets one.
func (t *tracer) toEach(endpoints []netip.AddrPort, source netip.Addr) error {
	followed := endpoints[:min(len(endpoints), endpointsMax)]
	if err := t.some(len(followed), func(i int) error { return t.deliver(followed[i], source) }); err != nil {
		return err
	}
	if more := len(endpoints) - len(followed); more > 0 {
		t.pass("endpoint", "-", "%d more endpoints are not followed", more)
	}
	return nil
}

// hasOthers reports whether the Service has ready endpoints of another family.
func (t *tracer) hasOthers(s *corev1.Service, family string) bool {
	return slices.ContainsFunc(t.behind(s), func(slice *discoveryv1.EndpointSlice) bool {
		return string(slice.AddressType) != family && slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool {
			return ptr.Deref(e.Conditions.Ready, true)
		})
	})
}

// withoutEndpoints says why a Service has none, as `setpoint why` does.
func (t *tracer) withoutEndpoints(s *corev1.Service) {
	why := explain.Explain(explained{t.World}, explain.Services.Named(s.Namespace, s.Name), s)
	if len(why.Causes) == 0 {
		t.stop("service", serviceName(s), "it has no ready endpoints", "setpoint why "+serviceName(s))
		return
	}
	says, change := why.Causes[0].What, why.Causes[0].Change
	if why.Causes[0].Object.Kind != "Service" {
		says = fmt.Sprintf("no ready endpoints: %s %s", why.Causes[0].Object, says)
	}
	for _, c := range why.Causes[0].Causes {
		says += "; " + c.Object.String() + ": " + c.What
	}
	if change == "" {
		change = "setpoint why " + serviceName(s)
	}
	t.stop("service", serviceName(s), says, change)
}

// deliver goes to one pod, or to what else an endpoint is. source is whose the packet is when it arrives there.
func (t *tracer) deliver(to netip.AddrPort, source netip.Addr) error {
	pod := t.podAt(to.Addr())
	if pod == nil {
		return t.deliverElsewhere(to)
	}
	t.pass("endpoint", podName(pod), "%s on node %s", to, pod.Spec.NodeName)
	own := t.sourceTo(to.Addr())
	if !t.allowed("egress", to, own) || !t.routed(pod, to.Addr()) {
		return nil
	}
	if pod.Spec.NodeName == t.from.Spec.NodeName {
		source = own // it is replaced behind the policies
	}
	if t.allowed("ingress", to, source) {
		t.listens(pod, to.Port())
	}
	return nil
}

// deliverElsewhere is for endpoints that are no pods, or pods on their node's network.
func (t *tracer) deliverElsewhere(to netip.AddrPort) error {
	if n := t.nodeAt(to.Addr()); n != nil {
		permitted := n.Name == t.from.Spec.NodeName || t.allowed("egress", to, t.sourceTo(to.Addr()))
		if permitted && t.letIn(n, to.Port()) {
			t.pass("endpoint", "node/"+n.Name, "%s is an address of the machine", to)
		}
		return nil
	}
	return t.elsewhere(to)
}

// routed asks how the pods of two nodes reach each other, at an address of the second.
func (t *tracer) routed(pod *corev1.Pod, address netip.Addr) bool {
	if !t.forwarded(pod.Spec.NodeName) {
		return false
	}
	if pod.Spec.NodeName == t.from.Spec.NodeName {
		return true
	}
	from, to := t.node(t.from.Spec.NodeName), t.node(pod.Spec.NodeName)
	if from == nil || to == nil {
		t.stop("route", "node/"+pod.Spec.NodeName, "there is no such Node", "start its agent")
		return false
	}
	choose := plan.Choose
	if address.Is6() {
		choose = plan.ChooseSecond
	}
	choice := choose(plan.NodeOf(from), plan.NodeOf(to))
	if choice.Way == plan.None {
		t.stop("route", "node/"+to.Name, choice.Why, "see --pod-network of the agents, and setpoint node status "+from.Name)
		return false
	}
	if problem := problemOf(from, plan.NodeOf(to), address); problem != "" {
		t.stop("route", "node/"+from.Name, problem, "nodes with --pod-network=routes must share a link; use auto")
		return false
	}
	t.pass("route", "node/"+to.Name, "%s: %s", choice.Way, choice.Why)
	return true
}

// problemOf is what a node's agent says of the way to another one's addresses of a family; "" if it says nothing.
func problemOf(from *corev1.Node, to plan.Node, address netip.Addr) string {
	others := to.PodCIDR6
	if address.Is6() {
		others = to.PodCIDR
	}
	for _, c := range from.Status.Conditions {
		if c.Type != networkProblem || c.Status != corev1.ConditionTrue {
			continue
		}
		for problem := range strings.SplitSeq(c.Message, "; ") {
			ofOther := address.Is4() && strings.HasSuffix(problem, "(IPv6)") || others.IsValid() && strings.Contains(problem, others.String())
			if strings.Contains(problem, "node "+to.Name+":") && !ofOther {
				return problem
			}
		}
	}
	return ""
}

// networkProblem is the condition by which agents say which nodes they do not reach.
const networkProblem corev1.NodeConditionType = "PodNetworkProblem"

// allowed asks the NetworkPolicies in one direction: those of the pod that sends, or of the one that receives.
func (t *tracer) allowed(direction string, to netip.AddrPort, source netip.Addr) bool {
	if t.from.Spec.HostNetwork && (direction == "egress" || t.isHere(to.Addr())) {
		return true // a machine reaches its own pods, and is selected by no policy
	}
	packet := policyplan.Packet{From: source, To: to.Addr(), Protocol: policyplan.Protocol(t.to.Protocol), Port: to.Port()}
	if t.whole == nil {
		t.whole = t.planned()
	}
	whole := t.whole
	table, isolated, pod := *whole, whole.Egress, t.from
	if direction == "egress" {
		table.Ingress = nil
	} else {
		table.Egress, isolated, pod = nil, whole.Ingress, t.podAt(to.Addr())
	}
	end := source
	if direction == "ingress" {
		end = to.Addr()
	}
	selected := isolated[end] != ""
	object := podName(pod)
	if !table.Allows(packet) {
		names := t.isolating(pod, end, direction)
		t.stop(direction, object, fmt.Sprintf("no rule of %s lets %s port %d through %s %s", strings.Join(names, ", "),
			t.to.Protocol, to.Port(), map[bool]string{true: "to", false: "from"}[direction == "egress"], t.otherEnd(direction, to, source)),
			fmt.Sprintf("allow it in %s of one of these policies", direction))
		return false
	}
	if selected {
		t.pass(direction, object, "%s allow it", strings.Join(t.isolating(pod, end, direction), ", "))
	}
	return true
}

func (t *tracer) isHere(address netip.Addr) bool {
	pod := t.podAt(address)
	return pod != nil && pod.Spec.NodeName == t.from.Spec.NodeName
}

// otherEnd describes who is not let through, with what selectors go by.
func (t *tracer) otherEnd(direction string, to netip.AddrPort, source netip.Addr) string {
	address := source
	if direction == "egress" {
		address = to.Addr()
	}
	if pod := t.podAt(address); pod != nil {
		return fmt.Sprintf("%s in %s with the labels %q", podName(pod), pod.Namespace, labels.Set(pod.Labels).String())
	}
	return address.String()
}

// isolating are the policies that select a pod, by its address, for a direction.
func (t *tracer) isolating(pod *corev1.Pod, address netip.Addr, direction string) (names []string) {
	for i, p := range t.Policies {
		if p.Namespace != pod.Namespace {
			continue
		}
		alone := t.planned(i)
		if isolated := map[string]map[netip.Addr]string{"ingress": alone.Ingress, "egress": alone.Egress}[direction]; isolated[address] != "" {
			names = append(names, policyName(p))
		}
	}
	return names
}

func policyName(p *networkingv1.NetworkPolicy) string { return "networkpolicy/" + p.Name }

// listens compares the port with those that the containers declare. They need not declare any, but who declares others is likely
// not to listen on this one.
func (t *tracer) listens(pod *corev1.Pod, port uint16) {
	declared := declaredPorts(pod, t.to.Protocol)
	if len(declared) == 0 || slices.Contains(declared, port) {
		return
	}
	t.steps = append(t.steps, Step{
		Step: "port", Verdict: Unsure, Object: podName(pod), Change: fmt.Sprintf("set targetPort to one of %v", declared),
		Says: fmt.Sprintf("nothing listens on port %d: its containers declare %v", port, declared),
	})
}

func declaredPorts(pod *corev1.Pod, protocol corev1.Protocol) (ports []uint16) {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, p := range c.Ports {
			if protocolOf(p.Protocol) == protocol {
				ports = append(ports, uint16(p.ContainerPort))
			}
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}
