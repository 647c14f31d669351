package services

import (
	"crypto/sha256"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// fromPool is the condition of a Service whose address is from the cluster's own pool: nodes announce it.
const fromPool = "setpoint.io/AddressFromPool"

// simulatedLabel is of nodes that run nothing.
const simulatedLabel = "setpoint.io/simulated"

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
	p := pooled{ips: parse(corev1.IPv4Protocol, balancerIPs(s)), near: isLocal(s.Spec.ExternalTrafficPolicy)}
	for _, slice := range behind {
		for _, e := range slice.Endpoints {
			if p.near && e.NodeName != nil && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				p.at = append(p.at, *e.NodeName)
			}
		}
	}
	return p
}

// announces reports whether a node may announce addresses.
func announces(n *corev1.Node) bool {
	_, excluded := n.Labels[corev1.LabelNodeExcludeBalancers]
	_, simulated := n.Labels[simulatedLabel]
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	return ready && !excluded && !simulated && n.DeletionTimestamp == nil
}

// elected are the addresses that self announces. All nodes that see the same nodes agree, and the loss of a node moves only its own.
func elected(all []pooled, nodes []string, self string) []netip.Addr {
	var mine []netip.Addr
	for _, p := range all {
		candidates := slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return p.near && !slices.Contains(p.at, n) })
		for _, ip := range p.ips {
			if len(candidates) > 0 && slices.MaxFunc(candidates, func(a, b string) int { return compareWeights(ip, a, b) }) == self {
				mine = append(mine, ip)
			}
		}
	}
	slices.SortFunc(mine, netip.Addr.Compare)
	return slices.Compact(mine)
}

// compareWeights orders nodes for one address, as if by lot.
func compareWeights(ip netip.Addr, a, b string) int {
	x, y := sha256.Sum256([]byte(ip.String()+"/"+a)), sha256.Sum256([]byte(ip.String()+"/"+b))
	return slices.Compare(x[:], y[:])
}
