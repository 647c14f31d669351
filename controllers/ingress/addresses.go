package ingress

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/setpoint-io/setpoint/agent/router/table"
)

// addressesMax is how many addresses a status has at most: those that sort first.
const addressesMax = 16

// addressesOf are where Ingresses are served: the addresses of nodes that serve them.
func addressesOf(nodes []*corev1.Node) []networkingv1.IngressLoadBalancerIngress {
	var all []networkingv1.IngressLoadBalancerIngress
	for _, node := range nodes {
		if at := addressOf(node); at != "" {
			all = append(all, networkingv1.IngressLoadBalancerIngress{IP: at})
		}
	}
	slices.SortFunc(all, func(a, b networkingv1.IngressLoadBalancerIngress) int { return cmp.Compare(a.IP, b.IP) })
	all = slices.CompactFunc(all, func(a, b networkingv1.IngressLoadBalancerIngress) bool { return a.IP == b.IP })
	return all[:min(len(all), addressesMax)]
}

// addressOf is where a node serves Ingresses; "" if it does not, or is not ready. The address for those outside comes first.
func addressOf(node *corev1.Node) string {
	if node == nil || node.Labels[table.NodeLabel] == "" || !isReady(node) {
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

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
