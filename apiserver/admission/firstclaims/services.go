package firstclaims

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/internal/reserved"
)

const (
	// balancerClass is that of Services which get addresses here, beside those that name none.
	balancerClass = "setpoint.io/load-balancer"
	// addressMissing is the condition of a load balancer that has no address, such as for one port that another has.
	addressMissing = "setpoint.io/AddressMissing"
	// proxyNameLabel names another program that serves a Service.
	proxyNameLabel = "service.kubernetes.io/service-proxy-name"
)

// claimsOfService are its ports at the nodes, if it is a load balancer there, and at its other addresses.
func (p Plugin) claimsOfService(s *corev1.Service) (all []claim) {
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	spec := field.NewPath("spec")
	atNodes := p.balancesAtNodes(s)
	for i, port := range s.Spec.Ports {
		number, path := reserved.Port{Protocol: port.Protocol, Number: port.Port}, spec.Child("ports").Index(i).Child("port")
		if atNodes {
			all = append(all, claim{thing{port: number}, path, port.Port})
		}
		for j, text := range s.Spec.ExternalIPs {
			if ip, ok := servedAt(s, text); ok {
				all = append(all, claim{thing{port: number, address: ip}, spec.Child("externalIPs").Index(j), text})
			}
		}
		for _, at := range s.Status.LoadBalancer.Ingress {
			if ip, ok := servedAt(s, at.IP); ok && !atNodes && s.Spec.Type == corev1.ServiceTypeLoadBalancer {
				all = append(all, claim{thing{port: number, address: ip}, path, port.Port})
			}
		}
	}
	return all
}

func (p Plugin) balancesAtNodes(s *corev1.Service) bool {
	class := s.Spec.LoadBalancerClass
	return p.AtNodes && s.Spec.Type == corev1.ServiceTypeLoadBalancer && (class == nil || *class == balancerClass)
}

// servedAt tells whether nodes serve a Service at the address of a text. They leave out those of families that are not the Service's.
func servedAt(s *corev1.Service, text string) (netip.Addr, bool) {
	ip, err := netip.ParseAddr(text)
	_, others := s.Labels[proxyNameLabel]
	if err != nil || ip.Is4In6() || others || s.Spec.ClusterIP == corev1.ClusterIPNone {
		return netip.Addr{}, false
	}
	family := corev1.IPv6Protocol
	if ip.Is4() {
		family = corev1.IPv4Protocol
	}
	if len(s.Spec.IPFamilies) == 0 {
		return ip, ip.Is4()
	}
	return ip, slices.Contains(s.Spec.IPFamilies, family)
}

// heldByService are the claims without those at the nodes if it got no address of them: one port that another has is enough for that.
func (p Plugin) heldByService(s *corev1.Service) []claim {
	all := p.claimsOfService(s)
	if !meta.IsStatusConditionTrue(s.Status.Conditions, addressMissing) || len(s.Status.LoadBalancer.Ingress) > 0 {
		return all
	}
	return slices.DeleteFunc(all, func(c claim) bool { return !c.address.IsValid() })
}

// olderService is the order in which nodes serve Services that claim one address.
func olderService(a, b *corev1.Service) int {
	return cmp.Or(cmp.Compare(a.CreationTimestamp.Unix(), b.CreationTimestamp.Unix()),
		cmp.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name))
}
