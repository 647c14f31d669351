package loadbalancer

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// fromPool gives each Service one address of each of its families: the one it has, else the one it asks for, else any.
func (s Source) fromPool(services []*corev1.Service) []decision {
	taken := map[netip.Addr]bool{}
	kept := make([]map[corev1.IPFamily]netip.Addr, len(services))
	for i, service := range services {
		kept[i] = map[corev1.IPFamily]netip.Addr{}
		for _, ip := range s.had(service) {
			if family := familyOf(ip); !taken[ip] && !kept[i][family].IsValid() {
				taken[ip], kept[i][family] = true, ip
			}
		}
	}
	decisions := make([]decision, len(services))
	for i, service := range services {
		decisions[i] = s.decide(service, kept[i], taken)
	}
	return decisions
}

// had are the addresses that a Service has and may keep: of its families, and it asks for no others.
func (s Source) had(service *corev1.Service) (ips []netip.Addr) {
	asked, _ := netip.ParseAddr(service.Spec.LoadBalancerIP)
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		ip, err := netip.ParseAddr(ingress.IP)
		if err != nil || !s.has(ip) || !slices.Contains(familiesOf(service), familyOf(ip)) {
			continue
		}
		if !asked.IsValid() || asked == ip || familyOf(asked) != familyOf(ip) {
			ips = append(ips, ip)
		}
	}
	return ips
}

// decide chooses what the Service does not have yet. A Service that cannot have the address that it asks for has none.
func (s Source) decide(service *corev1.Service, kept map[corev1.IPFamily]netip.Addr, taken map[netip.Addr]bool) decision {
	d := decision{service: service}
	if d.reason, d.message = s.objection(service, kept, taken); d.reason != "" {
		for _, ip := range kept {
			delete(taken, ip)
		}
		return d
	}
	for _, family := range familiesOf(service) {
		ip, ok := kept[family], true
		if !ip.IsValid() {
			ip, ok = s.choose(service, family, taken)
		}
		if !ok {
			d.reason, d.message = s.lack(family)
			continue
		}
		taken[ip], d.fromPool = true, true
		d.addresses = append(d.addresses, ip.String())
	}
	return d
}

func (s Source) choose(service *corev1.Service, family corev1.IPFamily, taken map[netip.Addr]bool) (netip.Addr, bool) {
	if asked, err := netip.ParseAddr(service.Spec.LoadBalancerIP); err == nil && familyOf(asked) == family {
		return asked, true
	}
	return s.free(family, taken)
}

// objection says why a Service cannot have the address that it asks for.
func (s Source) objection(of *corev1.Service, kept map[corev1.IPFamily]netip.Addr, taken map[netip.Addr]bool) (reason, message string) {
	asked := of.Spec.LoadBalancerIP
	if asked == "" {
		return "", ""
	}
	ip, err := netip.ParseAddr(asked)
	switch {
	case err != nil || !s.has(ip):
		return "AddressNotInPool", fmt.Sprintf("spec.loadBalancerIP %s is not in the pool of load balancer addresses", asked)
	case !slices.Contains(familiesOf(of), familyOf(ip)):
		return "AddressOfOtherFamily", fmt.Sprintf("spec.loadBalancerIP %s is of %s, which spec.ipFamilies lacks", asked, familyOf(ip))
	case taken[ip] && kept[familyOf(ip)] != ip:
		return "AddressTaken", fmt.Sprintf("spec.loadBalancerIP %s belongs to another Service", asked)
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
