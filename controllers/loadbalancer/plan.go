package loadbalancer

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/internal/reserved"
	"github.com/setpoint-io/setpoint/internal/servicerange"
	"github.com/setpoint-io/setpoint/internal/simulatednode"
)

const (
	// Class is our loadBalancerClass; Services without a class are ours too.
	Class = "setpoint.io/load-balancer"
	// FromPool is the condition of a Service whose address agents announce.
	FromPool = "setpoint.io/AddressFromPool"
	// AddressMissing is the condition of a Service that has no address, or none of one of its families: who has what it asks for.
	AddressMissing = "setpoint.io/AddressMissing"

	// portReserved is the reason for no address where a port of the Service is the cluster's own.
	portReserved = "PortReserved"
)

// world is what a plan is made of.
type world struct {
	services []*corev1.Service // of the type, or with an address left from when they were
	nodes    []*corev1.Node
	// endpoints tells whether a Service has a ready endpoint on a node.
	endpoints func(service *corev1.Service, node string) bool
	// isEndpoint tells whether that port is one of a Service's own endpoints.
	isEndpoint func(*corev1.Service, netip.Addr, reserved.Port) bool
	// quota tells whether one says how many load balancers a namespace may have.
	quota func(namespace string) bool
	// book knows which ports of the nodes' addresses no Service has.
	book *reserved.Book
}

// decision is what a Service shall have; reason and message say why it has nothing, or no address of one of its families.
type decision struct {
	service         *corev1.Service
	addresses       []string
	fromPool        bool
	reason, message string
}

// plan decides for all Services that are ours, the oldest first.
func (s Source) plan(w world) []decision {
	if s.None {
		return nil
	}
	var ours []*corev1.Service
	var decisions []decision
	for _, service := range slices.SortedFunc(slices.Values(w.services), olderFirst) {
		switch {
		case service.Spec.Type != corev1.ServiceTypeLoadBalancer:
			decisions = append(decisions, decision{service: service})
		case isOurs(service):
			ours = append(ours, service)
		}
	}
	if len(s.Pool) > 0 {
		return append(decisions, s.fromPool(ours, w)...)
	}
	return append(decisions, ofNodes(ours, w)...)
}

func isOurs(s *corev1.Service) bool {
	return s.Spec.LoadBalancerClass == nil || *s.Spec.LoadBalancerClass == Class
}

// ofNodes gives each Service the addresses of all nodes where its ports are not the cluster's own; of those with a local policy, of the
// nodes that have endpoints.
func ofNodes(services []*corev1.Service, w world) []decision {
	type port struct {
		protocol corev1.Protocol
		number   int32
	}
	holders := map[port]*corev1.Service{}
	var decisions []decision
	for _, s := range services {
		d := decision{service: s}
		for _, p := range s.Spec.Ports {
			if holder := holders[port{p.Protocol, p.Port}]; holder != nil {
				d.reason = "PortTaken"
				d.message = fmt.Sprintf("port %d/%s of the nodes belongs to Service %s", p.Port, p.Protocol, reconcile.KeyOf(holder))
			}
		}
		if d.reason == "" {
			d.reason, d.message = amongNodePorts(s)
		}
		if d.reason == "" {
			d.addresses, d.reason, d.message = w.free(s, nodeAddresses(s, w))
		}
		if d.reason == "" {
			for _, p := range s.Spec.Ports {
				holders[port{p.Protocol, p.Port}] = s
			}
		}
		decisions = append(decisions, d)
	}
	return decisions
}

// amongNodePorts is why a Service does not get the nodes' addresses: one of its ports is, or may become, another's node port.
func amongNodePorts(s *corev1.Service) (reason, message string) {
	for _, p := range s.Spec.Ports {
		if servicerange.IsNodePort(p.Port) && !isOwnNodePort(s, p) {
			return portReserved, fmt.Sprintf("port %d/%s of the nodes is one of the node ports, %d to %d",
				p.Port, p.Protocol, servicerange.NodePortMin, servicerange.NodePortMax)
		}
	}
	return "", ""
}

// isOwnNodePort: whoever asks there is led to the Service anyway.
func isOwnNodePort(s *corev1.Service, p corev1.ServicePort) bool {
	return reserved.Holding{Port: reserved.Port{Protocol: p.Protocol, Number: p.Port}, Use: reserved.NodePort}.IsNodePortOf(s)
}

// free are the addresses at which no port of the Service is reserved. A Service for which none is left is told why.
func (w world) free(s *corev1.Service, addresses []string) (left []string, reason, message string) {
	for _, text := range addresses {
		ip, _ := netip.ParseAddr(text) // internalAddresses returns nothing else
		holding, taken := w.reserved(s, ip)
		if !taken {
			left = append(left, text)
			continue
		}
		reason, message = portReserved, holding.String()
	}
	if len(left) > 0 {
		return left, "", ""
	}
	return nil, reason, message
}

// reserved tells who has a port of a Service at an address. A pod that has it of its node, and is an endpoint of the Service, is no other.
func (w world) reserved(s *corev1.Service, ip netip.Addr) (reserved.Holding, bool) {
	for _, p := range s.Spec.Ports {
		port := reserved.Port{Protocol: p.Protocol, Number: p.Port}
		holding, taken := w.book.At(ip, port)
		if taken && !holding.IsNodePortOf(s) && (holding.Use != reserved.Pod || !w.isEndpoint(s, ip, port)) {
			return holding, true
		}
	}
	return reserved.Holding{}, false
}

func nodeAddresses(s *corev1.Service, w world) []string {
	var addresses []string
	for _, n := range w.nodes {
		local := s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
		if balances(n) && (!local || w.endpoints(s, n.Name)) {
			addresses = append(addresses, internalAddresses(n, familiesOf(s)...)...)
		}
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}

// balances reports whether traffic shall go to a node.
func balances(n *corev1.Node) bool {
	_, excluded := n.Labels[corev1.LabelNodeExcludeBalancers]
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	return !excluded && !simulatednode.Is(n) && ready && n.DeletionTimestamp == nil
}

// internalAddresses are the node's first ones of each family. What would be each machine's own, such as 127.0.0.1, is none.
func internalAddresses(n *corev1.Node, families ...corev1.IPFamily) (addresses []string) {
	for _, family := range families {
		at := slices.IndexFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool {
			ip, err := netip.ParseAddr(a.Address)
			return a.Type == corev1.NodeInternalIP && err == nil && ip.IsGlobalUnicast() && ip.Is4() == (family == corev1.IPv4Protocol)
		})
		if at >= 0 {
			addresses = append(addresses, n.Status.Addresses[at].Address)
		}
	}
	return addresses
}

// familiesOf: a Service that does not say its families has addresses of IPv4.
func familiesOf(s *corev1.Service) []corev1.IPFamily {
	if len(s.Spec.IPFamilies) == 0 {
		return []corev1.IPFamily{corev1.IPv4Protocol}
	}
	return s.Spec.IPFamilies
}
