package services

import (
	"crypto/sha256"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/setpoint-io/setpoint/internal/simulatednode"
)

// fromPool is the condition of a Service whose address is from the cluster's own pool: nodes announce it.
const fromPool = "setpoint.io/AddressFromPool"

// pooled are the addresses of a Service that one node announces; if near, only a node that has a ready endpoint.
type pooled struct {
	ips  []netip.Addr
	near bool
	at   []string // the nodes with ready endpoints
}

func pooledOf(s *corev1.Service, behind []*discoveryv1.EndpointSlice) pooled {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer || !meta.IsStatusConditionTrue(s.Status.Conditions, fromPool) {
		return pooled{}
	}
	p := pooled{near: isLocal(s.Spec.ExternalTrafficPolicy)}
	for _, f := range familiesOf(s) {
		p.ips = append(p.ips, parse(f, balancerIPs(s))...)
	}
	for _, slice := range behind {
		for _, e := range slice.Endpoints {
			if p.near && e.NodeName != nil && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				p.at = append(p.at, *e.NodeName)
			}
		}
	}
	return p
}

// announcer is what a node announces: addresses, or none; those of IPv6 only where it has such an address itself.
type announcer struct{ any, second bool }

func announcerOf(n *corev1.Node) announcer {
	_, excluded := n.Labels[corev1.LabelNodeExcludeBalancers]
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	if !ready || excluded || simulatednode.Is(n) || n.DeletionTimestamp != nil {
		return announcer{}
	}
	return announcer{any: true, second: slices.ContainsFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool {
		ip, err := netip.ParseAddr(a.Address)
		return a.Type == corev1.NodeInternalIP && err == nil && ip.Is6()
	})}
}

// elected are the addresses that self announces. All nodes that see the same nodes agree, and the loss of a node moves only its own.
func elected(all []pooled, nodes map[string]announcer, self string) []netip.Addr {
	var mine []netip.Addr
	for _, p := range all {
		for _, ip := range p.ips {
			if p.winner(ip, nodes) == self {
				mine = append(mine, ip)
			}
		}
	}
	slices.SortFunc(mine, netip.Addr.Compare)
	return slices.Compact(mine)
}

// winner announces the address; "" if no node may.
func (p pooled) winner(ip netip.Addr, nodes map[string]announcer) (winner string) {
	for name, may := range nodes {
		if !may.any || ip.Is6() && !may.second || p.near && !slices.Contains(p.at, name) {
			continue
		}
		if winner == "" || compareWeights(ip.String(), name, winner) > 0 {
			winner = name
		}
	}
	return winner
}

// compareWeights orders nodes for one address or Service, as if by lot.
func compareWeights(of, a, b string) int {
	x, y := sha256.Sum256([]byte(of+"/"+a)), sha256.Sum256([]byte(of+"/"+b))
	return slices.Compare(x[:], y[:])
}
