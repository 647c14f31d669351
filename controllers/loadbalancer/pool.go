package loadbalancer

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// pool is the source while its addresses are given out.
type pool struct {
	source Source
	world  world
	taken  map[netip.Addr]bool
	given  map[corev1.IPFamily]*given
}

// fromPool gives each Service one address of each of its families: the one it has, else the one it asks for, else any. None is one at which
// a port of the Service is the cluster's own.
func (s Source) fromPool(services []*corev1.Service, w world) []decision {
	p := pool{s, w, map[netip.Addr]bool{}, map[corev1.IPFamily]*given{}}
	kept := make([]map[corev1.IPFamily]netip.Addr, len(services))
	for i, service := range services {
		kept[i] = map[corev1.IPFamily]netip.Addr{}
		for _, ip := range p.had(service) {
			if family := familyOf(ip); !p.taken[ip] && !kept[i][family].IsValid() {
				p.take(service, ip)
				kept[i][family] = ip
			}
		}
	}
	decisions := make([]decision, len(services))
	for i, service := range services {
		decisions[i] = p.decide(service, kept[i])
	}
	return decisions
}

// had are the addresses that a Service has and may keep: of its families, free for its ports, and it asks for no others, nor for one
// that it cannot have. What it gives back so is free before the first Service chooses.
func (p *pool) had(service *corev1.Service) (ips []netip.Addr) {
	if reason, _ := p.refusal(service); reason != "" {
		return nil
	}
	asked, _ := netip.ParseAddr(service.Spec.LoadBalancerIP)
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		ip, err := netip.ParseAddr(ingress.IP)
		if err != nil || !p.source.has(ip) || !slices.Contains(familiesOf(service), familyOf(ip)) {
			continue
		}
		if _, taken := p.world.reserved(service, ip); taken {
			continue
		}
		if !asked.IsValid() || asked == ip || familyOf(asked) != familyOf(ip) {
			ips = append(ips, ip)
		}
	}
	return ips
}

// decide chooses what the Service does not have yet. A Service that cannot have the address that it asks for has none.
func (p *pool) decide(service *corev1.Service, kept map[corev1.IPFamily]netip.Addr) decision {
	d := decision{service: service}
	if d.reason, d.message = p.objection(service, kept); d.reason != "" {
		for _, ip := range kept {
			p.give(service, ip)
		}
		return d
	}
	for _, family := range familiesOf(service) {
		ip := kept[family]
		if !ip.IsValid() {
			var reason, message string
			if ip, reason, message = p.choose(service, family); reason != "" {
				d.reason, d.message = reason, message
				continue
			}
			p.take(service, ip)
		}
		d.fromPool = true
		d.addresses = append(d.addresses, ip.String())
	}
	return d
}

// choose returns an address of the family, or says why there is none.
func (p *pool) choose(service *corev1.Service, family corev1.IPFamily) (ip netip.Addr, reason, message string) {
	if reason, message = p.share(service, family); reason != "" {
		return ip, reason, message
	}
	if asked, err := netip.ParseAddr(service.Spec.LoadBalancerIP); err == nil && familyOf(asked) == family {
		return asked, "", ""
	}
	ip, ok := p.source.free(family, func(ip netip.Addr) bool {
		holding, taken := p.world.reserved(service, ip)
		if !p.taken[ip] && taken {
			reason, message = portReserved, holding.String()
		}
		return !p.taken[ip] && !taken
	})
	switch {
	case ok:
		return ip, "", ""
	case reason == "":
		reason, message = p.source.lack(family)
	}
	return ip, reason, message
}

// objection says why a Service cannot have the address that it asks for.
func (p *pool) objection(of *corev1.Service, kept map[corev1.IPFamily]netip.Addr) (reason, message string) {
	if reason, message = p.refusal(of); reason != "" {
		return reason, message
	}
	ip, err := netip.ParseAddr(of.Spec.LoadBalancerIP)
	if err == nil && p.taken[ip] && kept[familyOf(ip)] != ip {
		return "AddressTaken", fmt.Sprintf("spec.loadBalancerIP %s belongs to another Service", ip)
	}
	return "", ""
}

// refusal is the objection to an address that no other Service is needed for.
func (p *pool) refusal(of *corev1.Service) (reason, message string) {
	asked := of.Spec.LoadBalancerIP
	if asked == "" {
		return "", ""
	}
	ip, err := netip.ParseAddr(asked)
	switch {
	case err != nil || !p.source.has(ip):
		return "AddressNotInPool", fmt.Sprintf("spec.loadBalancerIP %s is not in the pool of load balancer addresses", asked)
	case !slices.Contains(familiesOf(of), familyOf(ip)):
		return "AddressOfOtherFamily", fmt.Sprintf("spec.loadBalancerIP %s is of %s, which spec.ipFamilies lacks", asked, familyOf(ip))
	}
	if holding, taken := p.world.reserved(of, ip); taken {
		return portReserved, holding.String()
	}
	return "", ""
}

// lack says why there is no address of a family.
func (s Source) lack(family corev1.IPFamily) (reason, message string) {
	if !s.serves(family) {
		return "No" + string(family) + "InPool", fmt.Sprintf("the pool of load balancer addresses has none of %s", family)
	}
	return "PoolExhausted", fmt.Sprintf("the pool of load balancer addresses has none of %s left", family)
}
