package loadbalancer

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/shares"
)

// poolShare is the reason for no address where the namespace of the Service has its share of the pool.
const poolShare = "PoolShare"

// given are the addresses of one family of a pool that Services have.
type given struct {
	all int
	of  map[string]int // by namespace
}

// take notes that a Service has an address.
func (p *pool) take(service *corev1.Service, ip netip.Addr) {
	p.taken[ip] = true
	p.count(service, ip, 1)
}

// give takes the address back.
func (p *pool) give(service *corev1.Service, ip netip.Addr) {
	delete(p.taken, ip)
	p.count(service, ip, -1)
}

func (p *pool) count(service *corev1.Service, ip netip.Addr, by int) {
	g := p.given[familyOf(ip)]
	if g == nil {
		g = &given{of: map[string]int{}}
		p.given[familyOf(ip)] = g
	}
	g.all += by
	g.of[service.Namespace] += by
}

// share says why a Service gets no address of the family: its namespace has its share. What runs in kube-system may have all, and so may a
// namespace for which a quota says a number.
func (p *pool) share(service *corev1.Service, family corev1.IPFamily) (reason, message string) {
	tenant, g := shares.Namespace(service.Namespace), p.given[family]
	if g == nil {
		return "", ""
	}
	limits, has := shares.Limits{All: p.source.size(family)}, g.of[service.Namespace]
	if tenant.Privileged || has == 0 || limits.Fits(has, g.all, 1) || p.world.quota(service.Namespace) {
		return "", ""
	}
	return poolShare, fmt.Sprintf("%d addresses of %s belong to %s, which is its share while %d of %d in the pool are taken; "+
		"a ResourceQuota there that says %s gives it another number",
		has, family, tenant.Name, g.all, limits.All, corev1.ResourceServicesLoadBalancers)
}

// saysLoadBalancers reports whether a quota says how many load balancers its namespace may have.
func saysLoadBalancers(o metav1.Object) bool {
	q, ok := o.(*corev1.ResourceQuota)
	if !ok || q == nil {
		return false
	}
	_, says := q.Spec.Hard[corev1.ResourceServicesLoadBalancers]
	return says
}
