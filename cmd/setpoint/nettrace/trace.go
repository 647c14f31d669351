package nettrace

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/agent/net/policy"
	policyplan "github.com/setpoint-io/setpoint/agent/net/policy/plan"
	"github.com/setpoint-io/setpoint/agent/net/services"
	"github.com/setpoint-io/setpoint/internal/clusterdns"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

// ErrPort says that a target has several ports or none, and none was named.
var ErrPort = errors.New("name a port, as TO:PORT")

// tracer is one run of Trace.
type tracer struct {
	*World
	from   *corev1.Pod
	to     Target
	lookup services.Lookup   // of the node that translates
	whole  *policyplan.Table // of all policies, once it was needed
	steps  []Step
}

// Trace follows a packet. It fails for a pod or Service that does not exist, and a port that is not known.
func Trace(w *World, q Question) (Answer, error) {
	t := &tracer{World: w, to: q.To, from: find(w.Pods, q.From.Namespace, q.From.Name)}
	if t.from == nil {
		return Answer{}, apierrors.NewNotFound(corev1.Resource("pods"), q.From.Name)
	}
	if len(addressesOf(t.from)) == 0 || ended(t.from) || t.from.Spec.NodeName == "" {
		t.stop("pod", podName(t.from), "it does not run, so it sends nothing", "setpoint why "+podName(t.from))
		return t.answer(), nil
	}
	t.lookup = t.seenFrom(t.from.Spec.NodeName)
	err := t.target()
	return t.answer(), err
}

// answer is made of the steps: the first that stops everything says why.
func (t *tracer) answer() Answer {
	a := Answer{From: podName(t.from), To: t.to.String(), Verdict: Arrives, Steps: t.steps}
	for _, s := range t.steps {
		if worse(s.Verdict, a.Verdict) {
			a.Verdict, a.Why, a.Change = s.Verdict, s.Object+": "+s.Says, s.Change
		}
	}
	return a
}

func worse(a, b Verdict) bool {
	order := []Verdict{Arrives, Unsure, Partly, Stops}
	return slices.Index(order, a) > slices.Index(order, b)
}

func (t *tracer) pass(step, object, format string, args ...any) {
	t.steps = append(t.steps, Step{Step: step, Verdict: Arrives, Object: object, Says: fmt.Sprintf(format, args...)})
}

func (t *tracer) stop(step, object, says, change string) {
	t.steps = append(t.steps, Step{Step: step, Verdict: Stops, Object: object, Says: says, Change: change})
}

func podName(p *corev1.Pod) string { return "pod/" + p.Name }

func serviceName(s *corev1.Service) string { return "service/" + s.Name }

// target goes where the question says.
func (t *tracer) target() error {
	switch t.to.Kind {
	case toPod:
		pod := find(t.Pods, t.to.Object.Namespace, t.to.Object.Name)
		if pod == nil {
			return apierrors.NewNotFound(corev1.Resource("pods"), t.to.Object.Name)
		}
		return t.toPod(pod, addressesOf(pod)...)
	case toService:
		s := t.Service(t.to.Object.Namespace, t.to.Object.Name)
		if s == nil {
			return apierrors.NewNotFound(corev1.Resource("services"), t.to.Object.Name)
		}
		return t.toService(s)
	case toName:
		return t.toName(t.to.Name)
	}
	return t.toAddress(t.to.Address)
}

// toPod goes to a pod's own addresses.
func (t *tracer) toPod(pod *corev1.Pod, addresses ...netip.Addr) error {
	if ended(pod) || len(addresses) == 0 {
		t.stop("pod", podName(pod), "it has no address, because it does not run", "setpoint why "+podName(pod))
		return nil
	}
	port := t.to.Port
	if port == 0 {
		declared := declaredPorts(pod, t.to.Protocol)
		if len(declared) != 1 {
			return fmt.Errorf("%s has %d ports: %w", podName(pod), len(declared), ErrPort)
		}
		port = declared[0]
	}
	return t.inFamilies(addresses, func(of []netip.Addr) error {
		if pod.Spec.HostNetwork {
			return t.toMachine(t.node(pod.Spec.NodeName), of[0], port)
		}
		return t.deliver(netip.AddrPortFrom(of[0], port), t.sourceTo(of[0]))
	})
}

// toService goes to a Service by the addresses that its name has.
func (t *tracer) toService(s *corev1.Service) error {
	if s.Spec.Type == corev1.ServiceTypeExternalName || s.Spec.ClusterIP == corev1.ClusterIPNone {
		return t.toName(s.Name + "." + s.Namespace + ".svc." + clusterDomain + ".")
	}
	addresses := clusterAddresses(s)
	if len(addresses) == 0 {
		t.stop("service", serviceName(s), "it has no cluster address", "")
		return nil
	}
	for _, p := range s.Spec.Ports {
		if node := t.node(t.from.Spec.NodeName); node != nil && t.to.Port != 0 && uint16(p.NodePort) == t.to.Port && !hasPort(s, t.to) {
			return t.toNodePort(s, node)
		}
	}
	return t.inFamilies(addresses, func(of []netip.Addr) error { return t.toAddress(of[0]) })
}

func clusterAddresses(s *corev1.Service) []netip.Addr {
	if len(s.Spec.ClusterIPs) == 0 {
		return parsed(s.Spec.ClusterIP)
	}
	return parsed(s.Spec.ClusterIPs...)
}

func hasPort(s *corev1.Service, to Target) bool {
	return slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool {
		return uint16(p.Port) == to.Port && protocolOf(p.Protocol) == to.Protocol
	})
}

func protocolOf(p corev1.Protocol) corev1.Protocol {
	if p == "" {
		return corev1.ProtocolTCP
	}
	return p
}

// toNodePort asks for a Service's node port on a node, which another Service may have.
func (t *tracer) toNodePort(s *corev1.Service, node *corev1.Node) error {
	served := func(ip netip.Addr) bool {
		return slices.ContainsFunc(clusterAddresses(s), func(own netip.Addr) bool { return sameFamily(own, ip) })
	}
	var addresses []netip.Addr
	for _, ip := range internalAddresses(node) {
		if served(ip) {
			addresses = append(addresses, ip)
		}
	}
	return t.inFamilies(addresses, func(of []netip.Addr) error {
		_, holder, ok := t.lookup.At(t.at(everywhere(of[0]), t.to.Port))
		if ok && (holder.Namespace != s.Namespace || holder.Name != s.Name) {
			t.stop("service", serviceName(s), fmt.Sprintf("its node port %d is taken by service/%s in %s, which is older", t.to.Port, holder.Name, holder.Namespace),
				"give one of the two another nodePort")
			return nil
		}
		return t.toMachine(node, of[0], t.to.Port)
	})
}

func (t *tracer) at(address netip.Addr, port uint16) network.ServiceAddress {
	return network.ServiceAddress{Protocol: policyplan.Protocol(t.to.Protocol), Address: netip.AddrPortFrom(address, port)}
}

// toAddress goes to an address: a Service's, a node's, a pod's, or one outside of the cluster.
func (t *tracer) toAddress(address netip.Addr) error {
	if !t.sourceTo(address).IsValid() {
		t.withoutFamily(address)
		return nil
	}
	owners := t.ServicesAt(address)
	port := t.to.Port
	if port == 0 && len(owners) == 1 && len(owners[0].Spec.Ports) == 1 {
		port, t.to.Protocol = uint16(owners[0].Spec.Ports[0].Port), protocolOf(owners[0].Spec.Ports[0].Protocol)
	}
	pod, node := t.podAt(address), t.nodeAt(address)
	if port == 0 && pod != nil {
		return t.toPod(pod, address)
	}
	if port == 0 {
		return ErrPort
	}
	if to, holder, ok := t.lookup.At(t.at(address, port)); ok {
		return t.translated(to, t.Service(holder.Namespace, holder.Name), t.sourceTo(address))
	}
	switch {
	case len(owners) > 0:
		t.notServed(owners[0], port)
		return nil
	case pod != nil:
		return t.deliver(netip.AddrPortFrom(address, port), t.sourceTo(address))
	case node != nil:
		return t.toMachine(node, address, port)
	}
	return t.elsewhere(netip.AddrPortFrom(address, port))
}

// notServed is for a cluster address whose port leads nowhere.
func (t *tracer) notServed(s *corev1.Service, port uint16) {
	if name, other := s.Labels[proxyLabel]; other {
		if name == clusterdns.ProxyName && !t.asksDNS() {
			return
		}
		t.pass("service", serviceName(s), "%s serves it, which is not traced", name)
		return
	}
	var has []string
	for _, p := range s.Spec.Ports {
		has = append(has, fmt.Sprintf("%d/%s", p.Port, strings.ToLower(string(protocolOf(p.Protocol)))))
	}
	t.stop("service", serviceName(s), fmt.Sprintf("it has no port %d/%s: it has %s", port, strings.ToLower(string(t.to.Protocol)), strings.Join(has, ", ")),
		"ask for one of its ports")
}

const proxyLabel = "service.kubernetes.io/service-proxy-name"

// elsewhere is an address that nothing of the cluster has.
func (t *tracer) elsewhere(to netip.AddrPort) error {
	for _, n := range t.Nodes {
		for _, cidr := range append([]string{n.Spec.PodCIDR}, n.Spec.PodCIDRs...) {
			if p, err := netip.ParsePrefix(cidr); err == nil && p.Contains(to.Addr()) {
				t.stop("pod", to.Addr().String(), "no pod has this address, which is of node "+n.Name, "ask for a pod that runs")
				return nil
			}
		}
	}
	if !t.allowed("egress", to, t.sourceTo(to.Addr())) {
		return nil
	}
	node := t.from.Spec.NodeName
	if to.Addr().Is6() && !nodeAddress(t.node(node), to.Addr()).IsValid() {
		t.steps = append(t.steps, Step{Step: "route", Verdict: Unsure, Object: to.Addr().String(), Change: "give the machine an address of IPv6",
			Says: "it is not of the cluster, and node " + node + " lists no address of IPv6 to leave with"})
		return nil
	}
	if !t.forwarded("") {
		return nil
	}
	t.pass("route", to.Addr().String(), "it is not of the cluster: packets leave node %s with the node's address", node)
	return nil
}

// seenFrom are the Services as a node translates them.
func (t *tracer) seenFrom(node string) services.Lookup {
	here := services.Place{Node: node}
	if n := t.node(node); n != nil {
		here.Zone = n.Labels[corev1.LabelTopologyZone]
	}
	return services.NewLookup(t.Services, t.behind, here, reserved.Of(t.Nodes, t.EndpointSlices...))
}

// planned are the policies of all nodes in one table.
func (t *tracer) planned(policies ...int) *policyplan.Table {
	world := policyplan.World{Namespaces: map[string]labelSet{}}
	for i, p := range t.Policies {
		if len(policies) == 0 || slices.Contains(policies, i) {
			world.Policies = append(world.Policies, p)
		}
	}
	for _, n := range t.Namespaces {
		world.Namespaces[n.Name] = n.Labels
	}
	for _, p := range t.Pods {
		if planned, ok := policy.Planned(p); ok {
			planned.Here = true
			world.Pods = append(world.Pods, planned)
		}
	}
	return policyplan.Of(world)
}
