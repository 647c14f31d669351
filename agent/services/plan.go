package services

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/setpoint-io/setpoint/agent/network"
)

// proxyNameLabel names another program that serves a Service.
const proxyNameLabel = "service.kubernetes.io/service-proxy-name"

// protocols have ports; their numbers are IANA's.
var protocols = map[corev1.Protocol]uint8{corev1.ProtocolTCP: 6, corev1.ProtocolUDP: 17, corev1.ProtocolSCTP: 132}

// serviceName is where a slice belongs.
type serviceName struct{ namespace, name string }

// plan says what each port of each Service leads to, in order of addresses: the same world gives the same plan.
func plan(all []*corev1.Service, endpointSlices []*discoveryv1.EndpointSlice) []network.Service {
	behind := map[serviceName][]*discoveryv1.EndpointSlice{}
	for _, slice := range endpointSlices {
		if slice.AddressType == discoveryv1.AddressTypeIPv4 {
			owner := serviceName{slice.Namespace, slice.Labels[discoveryv1.LabelServiceName]}
			behind[owner] = append(behind[owner], slice)
		}
	}
	var planned []network.Service
	for _, s := range all {
		if isOurs(s) {
			planned = append(planned, portsOf(s, behind[serviceName{s.Namespace, s.Name}])...)
		}
	}
	slices.SortStableFunc(planned, compare)
	// An address that two Services hold for a moment must not keep all others from the network.
	return slices.CompactFunc(planned, func(a, b network.Service) bool { return compare(a, b) == 0 })
}

func compare(a, b network.Service) int {
	return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.Protocol, b.Protocol))
}

func isOurs(s *corev1.Service) bool {
	_, otherProxy := s.Labels[proxyNameLabel]
	_, headless := s.Labels[corev1.IsHeadlessService]
	return !otherProxy && !headless && s.Spec.Type != corev1.ServiceTypeExternalName
}

func portsOf(s *corev1.Service, behind []*discoveryv1.EndpointSlice) []network.Service {
	var ports []network.Service
	for _, text := range s.Spec.ClusterIPs {
		address, err := netip.ParseAddr(text)
		if err != nil || !address.Is4() { // "None", or the other family
			continue
		}
		for _, port := range s.Spec.Ports {
			ports = append(ports, network.Service{
				Protocol: protocols[port.Protocol], Address: netip.AddrPortFrom(address, uint16(port.Port)), Endpoints: endpoints(port, behind),
			})
		}
	}
	return ports
}

// endpoints are those behind one port, each once, in order.
func endpoints(port corev1.ServicePort, behind []*discoveryv1.EndpointSlice) []netip.AddrPort {
	var ready, ending []netip.AddrPort
	for _, slice := range behind {
		number, ok := portNumber(port, slice.Ports)
		if !ok {
			continue
		}
		for _, e := range slice.Endpoints {
			switch c := e.Conditions; {
			case c.Ready == nil || *c.Ready:
				ready = appendAddresses(ready, e, number)
			case c.Serving != nil && *c.Serving && c.Terminating != nil && *c.Terminating:
				ending = appendAddresses(ending, e, number)
			}
		}
	}
	if len(ready) == 0 {
		ready = ending
	}
	slices.SortFunc(ready, netip.AddrPort.Compare)
	return slices.Compact(ready)
}

// portNumber finds a Service's port in a slice: names tell, since numbers may differ from slice to slice.
func portNumber(port corev1.ServicePort, ports []discoveryv1.EndpointPort) (uint16, bool) {
	for _, p := range ports {
		if p.Port != nil && p.Name != nil && *p.Name == port.Name && p.Protocol != nil && *p.Protocol == port.Protocol {
			return uint16(*p.Port), true
		}
	}
	return 0, false
}

// appendAddresses takes the first: the others of one endpoint mean the same.
func appendAddresses(to []netip.AddrPort, e discoveryv1.Endpoint, port uint16) []netip.AddrPort {
	if len(e.Addresses) == 0 {
		return to
	}
	address, err := netip.ParseAddr(e.Addresses[0])
	if err != nil || !address.Is4() {
		return to
	}
	return append(to, netip.AddrPortFrom(address, port))
}
