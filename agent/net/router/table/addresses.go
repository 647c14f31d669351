package table

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/reserved"
)

// addressesMax is how many addresses a status has at most: those that sort first.
const addressesMax = 16

// Addresses are where Ingresses and Gateways are served: the addresses of ready nodes that serve them, sorted.
func Addresses(nodes []*corev1.Node) []string {
	var all []string
	edges := reserved.EdgesOf(nodes)
	for _, node := range nodes {
		if at := servedAt(node); at != "" && edges.May(node) {
			all = append(all, at)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), addressesMax)]
}

// AddressesChanged tells whether a change of a node, of which either may be nil, can change Addresses.
func AddressesChanged(before, after *corev1.Node) bool {
	return servedAt(before) != servedAt(after) || reserved.EdgesChanged(before, after)
}

// servedAt is where a node serves if it may; "" if it does not, is not ready, or is nil. The address for those outside comes first.
func servedAt(node *corev1.Node) string {
	if node == nil || node.Labels[reserved.IngressLabel] == "" || !has(node, corev1.NodeReady) || has(node, NodeProblem) {
		return ""
	}
	for _, kind := range []corev1.NodeAddressType{corev1.NodeExternalIP, corev1.NodeInternalIP} {
		for _, a := range node.Status.Addresses {
			if a.Type == kind {
				return a.Address
			}
		}
	}
	return ""
}

func has(node *corev1.Node, kind corev1.NodeConditionType) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}
