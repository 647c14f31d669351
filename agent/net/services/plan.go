package services

import (
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/setpoint-io/setpoint/agent/net/ipfamily"
	"github.com/setpoint-io/setpoint/agent/net/network"
)

// proxyNameLabel names another program that serves a Service.
const proxyNameLabel = "service.kubernetes.io/service-proxy-name"

// planned is what one Service needs of this node: its addresses, and the port on which load balancers ask for endpoints here.
type planned struct {
	addresses  []network.Service
	healthPort uint16
	local      int // ready endpoints here
	pooled     pooled
	// refused says what of the Service is not served.
	refused string
}

// plan says what each address of a Service leads to, seen from here. The same objects give the same plan.
func plan(s *corev1.Service, behind []*discoveryv1.EndpointSlice, here Place) planned {
	if s == nil || !isOurs(s) {
		return planned{}
	}
	var p planned
	local := map[netip.Addr]bool{}
	for _, port := range s.Spec.Ports {
		for _, f := range familiesOf(s) {
			all := endpointsOf(port, f, behind, here)
			chosen := choose(all, here)
			p.addresses = append(p.addresses, internal(s, port, f, chosen)...)
			p.addresses = append(p.addresses, external(s, port, f, chosen)...)
			for _, e := range all {
				if e.local && e.ready && f == firstFamily(s) {
					local[e.address.Addr()] = true
				}
			}
		}
	}
	p.addresses, p.pooled = distinct(p.addresses), pooledOf(s, behind)
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer && isLocal(s.Spec.ExternalTrafficPolicy) {
		p.healthPort, p.local = uint16(s.Spec.HealthCheckNodePort), len(local)
	}
	return p
}

func isOurs(s *corev1.Service) bool {
	_, otherProxy := s.Labels[proxyNameLabel]
	_, headless := s.Labels[corev1.IsHeadlessService]
	return !otherProxy && !headless && s.Spec.Type != corev1.ServiceTypeExternalName && s.Spec.ClusterIP != corev1.ClusterIPNone
}

// familiesOf are those of a Service's addresses: the one of its cluster address where it says none.
func familiesOf(s *corev1.Service) []corev1.IPFamily {
	if len(s.Spec.IPFamilies) > 0 {
		return s.Spec.IPFamilies
	}
	return []corev1.IPFamily{corev1.IPv4Protocol}
}

// firstFamily counts for load balancers: a pod with two addresses is one endpoint.
func firstFamily(s *corev1.Service) corev1.IPFamily { return familiesOf(s)[0] }

// in reports whether an address is of a family.
func in(f corev1.IPFamily, ip netip.Addr) bool {
	return ip.Is4() && f == corev1.IPv4Protocol || ip.Is6() && !ip.Is4In6() && f == corev1.IPv6Protocol
}

func isLocal(policy corev1.ServiceExternalTrafficPolicy) bool {
	return policy == corev1.ServiceExternalTrafficPolicyLocal
}

// distinct keeps the first of each address: one may stand in several fields.
func distinct(all []network.Service) []network.Service {
	seen := map[network.ServiceAddress]bool{}
	return slices.DeleteFunc(all, func(s network.Service) bool {
		again := seen[s.ServiceAddress]
		seen[s.ServiceAddress] = true
		return again
	})
}

// internal are the cluster addresses.
func internal(s *corev1.Service, port corev1.ServicePort, f corev1.IPFamily, chosen choice) []network.Service {
	endpoints, silent := chosen.cluster, false
	if policy := s.Spec.InternalTrafficPolicy; policy != nil && *policy == corev1.ServiceInternalTrafficPolicyLocal {
		endpoints, silent = chosen.local, len(chosen.local) == 0 && len(chosen.cluster) > 0
	}
	ips := s.Spec.ClusterIPs
	if len(ips) == 0 {
		ips = []string{s.Spec.ClusterIP}
	}
	var addresses []network.Service
	for _, ip := range parse(f, ips) {
		addresses = append(addresses, network.Service{
			ServiceAddress: at(port.Protocol, ip, port.Port), Affinity: affinity(s),
			Endpoints: addressesOf(endpoints), Silent: silent, Here: podsHere(endpoints),
		})
	}
	return addresses
}

// external are the addresses at which others than pods ask: node ports, external addresses and those of load balancers.
func external(s *corev1.Service, port corev1.ServicePort, f corev1.IPFamily, chosen choice) []network.Service {
	to := network.Service{External: true, Affinity: affinity(s), Endpoints: addressesOf(chosen.cluster), Here: podsHere(chosen.cluster)}
	if isLocal(s.Spec.ExternalTrafficPolicy) {
		to.KeepsSource, to.Outside = true, addressesOf(chosen.local)
		to.Here = podsHere(slices.Concat(chosen.cluster, chosen.local))
	}
	var addresses []network.Service
	add := func(ip netip.Addr, number int32, sources []netip.Prefix) {
		to.ServiceAddress, to.Sources = at(port.Protocol, ip, number), sources
		addresses = append(addresses, to)
	}
	if port.NodePort != 0 {
		add(unspecified[f], port.NodePort, nil)
	}
	for _, ip := range parse(f, balancerIPs(s)) { // their source ranges hold, even if the address is external too
		add(ip, port.Port, sourceRanges(s, f))
	}
	for _, ip := range parse(f, s.Spec.ExternalIPs) {
		add(ip, port.Port, nil)
	}
	return addresses
}

// balancerIPs are those whose packets arrive here unchanged.
func balancerIPs(s *corev1.Service) []string {
	var ips []string
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		if s.Spec.Type == corev1.ServiceTypeLoadBalancer && (ingress.IPMode == nil || *ingress.IPMode == corev1.LoadBalancerIPModeVIP) {
			ips = append(ips, ingress.IP)
		}
	}
	return ips
}

func at(protocol corev1.Protocol, ip netip.Addr, port int32) network.ServiceAddress {
	return network.ServiceAddress{Protocol: ipfamily.Protocols[protocol], Address: netip.AddrPortFrom(ip, uint16(port))}
}

// unspecified stands for all addresses of a machine.
var unspecified = map[corev1.IPFamily]netip.Addr{
	corev1.IPv4Protocol: netip.IPv4Unspecified(), corev1.IPv6Protocol: netip.IPv6Unspecified(),
}

// parse leaves out what is no address, and the other family.
func parse(f corev1.IPFamily, texts []string) []netip.Addr {
	var ips []netip.Addr
	for _, text := range texts {
		if ip, err := netip.ParseAddr(text); err == nil && in(f, ip) && !ip.IsUnspecified() {
			ips = append(ips, ip)
		}
	}
	return ips
}

func affinity(s *corev1.Service) time.Duration {
	if s.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		return 0
	}
	seconds := corev1.DefaultClientIPServiceAffinitySeconds
	if c := s.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		seconds = *c.ClientIP.TimeoutSeconds
	}
	return time.Duration(seconds) * time.Second
}

func addressesOf(endpoints []endpoint) []netip.AddrPort {
	var addresses []netip.AddrPort
	for _, e := range endpoints {
		addresses = append(addresses, e.address)
	}
	return addresses
}

func podsHere(endpoints []endpoint) []netip.Addr {
	var pods []netip.Addr
	for _, e := range endpoints {
		if e.local {
			pods = append(pods, e.address.Addr())
		}
	}
	slices.SortFunc(pods, netip.Addr.Compare)
	return slices.Compact(pods)
}
