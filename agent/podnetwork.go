package agent

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/agent/net/network/plan"
	"github.com/setpoint-io/setpoint/agent/simulated"
)

// PodNetwork is where the pods of all nodes have their addresses from: each node has a part of the ranges of pods, with a prefix of
// NodeMaskSize bits and, in a cluster that has IPv6, one of NodeMaskSize6. The zero value accepts any range.
type PodNetwork struct {
	network.Ranges
	NodeMaskSize, NodeMaskSize6 int
}

// errForeignRange says that a node's range is none of its cluster's: routes to it would lead
// traffic astray that is not the node's.
var errForeignRange = errors.New(
	"the pod CIDR of this node is not of the cluster's pod network: delete the Node, it comes back with another",
)

// String names what nodes can have.
func (n PodNetwork) String() string {
	text := fmt.Sprintf("a /%d of %s", n.NodeMaskSize, n.Pods)
	if n.Pods6.IsValid() {
		text += fmt.Sprintf(" and a /%d of %s", n.NodeMaskSize6, n.Pods6)
	}
	return text
}

// has reports whether a node can have these ranges: one of IPv4 and, behind a comma, maybe one of IPv6.
func (n PodNetwork) has(cidrs string) bool {
	first, second, both := strings.Cut(cidrs, ",")
	if !n.Pods.IsValid() {
		_, err := netip.ParsePrefix(first)
		return err == nil
	}
	return isPart(first, n.Pods, n.NodeMaskSize) && (!both || n.Pods6.IsValid() && isPart(second, n.Pods6, n.NodeMaskSize6))
}

func isPart(text string, of netip.Prefix, bits int) bool {
	p, err := netip.ParsePrefix(text)
	return err == nil && p == p.Masked() && p.Bits() == bits && of.Contains(p.Addr())
}

// podCIDRs are a node's ranges with a comma between them, as a runtime is told them.
func podCIDRs(n *corev1.Node) string {
	if len(n.Spec.PodCIDRs) > 1 {
		return strings.Join(n.Spec.PodCIDRs, ",")
	}
	return n.Spec.PodCIDR
}

// peersOf lists the other nodes that have both an address and ranges of the network, by
// name. Of several with one range, or one key, the oldest has it, and our own is nobody else's.
func peersOf(self string, all []*corev1.Node, of PodNetwork) []plan.Node {
	peers := []plan.Node{}
	taken := map[string]bool{}
	nodes := slices.Clone(all)
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return compareAge(self, a, b) })
	for _, n := range nodes {
		cidrs := strings.Split(podCIDRs(n), ",")
		if cidrs[0] == "" || slices.ContainsFunc(cidrs, func(cidr string) bool { return taken[cidr] }) || !of.has(podCIDRs(n)) {
			continue
		}
		for _, cidr := range cidrs {
			taken[cidr] = true
		}
		peer := plan.NodeOf(n)
		if key := peer.Facts.WireGuardKey; key != "" && taken[key] { // the packets of the one that has it would go to this one
			peer.Facts.WireGuardKey, peer.Facts.NoWireGuard = "", "another node has told its key"
		} else {
			taken[key] = true
		}
		if n.Name != self && peer.IP.IsValid() && !isSimulated(n) {
			peers = append(peers, peer)
		}
	}
	slices.SortFunc(peers, func(a, b plan.Node) int { return strings.Compare(a.Name, b.Name) })
	return peers
}

// compareAge puts our own node first, then the oldest. Servers set the time: no node makes itself older.
func compareAge(self string, a, b *corev1.Node) int {
	switch {
	case a.Name == b.Name:
		return 0
	case a.Name == self:
		return -1
	case b.Name == self:
		return 1
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}

// isSimulated: such a node has no network to route to.
func isSimulated(n *corev1.Node) bool {
	_, ok := n.Labels[simulated.Label]
	return ok
}
