package gateway

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	v1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/setpoint-io/setpoint/internal/reserved"
)

// balancers knows which Services have TCP ports at addresses of machines, where Gateways are served too, as load balancers or by external
// addresses: by the port, the oldest. They are looked up when the first listener asks.
func (in *Input) balancers() func(port int32) *corev1.Service {
	holders := sync.OnceValue(in.balancersNow)
	return func(port int32) *corev1.Service { return holders()[port] }
}

func (in *Input) balancersNow() map[int32]*corev1.Service {
	holders := map[int32]*corev1.Service{}
	if in.Services == nil {
		return holders
	}
	for _, s := range in.Services() {
		if !atMachine(s, in.Reserved) {
			continue
		}
		for _, p := range s.Spec.Ports {
			if holder := holders[p.Port]; p.Protocol == corev1.ProtocolTCP && (holder == nil || older(s, holder) < 0) {
				holders[p.Port] = s
			}
		}
	}
	return holders
}

// atMachine: an address of a pool is no machine's.
func atMachine(s *corev1.Service, book *reserved.Book) bool {
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		return false
	}
	texts := slices.Clone(s.Spec.ExternalIPs)
	for _, at := range s.Status.LoadBalancer.Ingress {
		if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
			texts = append(texts, at.IP)
		}
	}
	return slices.ContainsFunc(texts, func(text string) bool {
		ip, err := netip.ParseAddr(text)
		return err == nil && book.HasMachine(ip)
	})
}

// judgeBalancers: a port of nodes that a Service has is not a younger Gateway's. At the ports of Ingresses no Service has one of theirs.
func (b *builder) judgeBalancers(l *listener) {
	if _, shared := b.Shared[l.number]; l.own || shared || l.accepted.any() {
		return
	}
	s := b.balancer(l.spec.Port)
	switch {
	case s == nil || Owns(l.gateway, s):
	case older(s, l.object()) > 0:
		l.beside = s
	default:
		l.accepted = fault{
			string(v1.ListenerReasonPortUnavailable),
			fmt.Sprintf("port %d of nodes belongs to Service %s/%s, which is older", l.spec.Port, s.Namespace, s.Name),
		}
	}
}
