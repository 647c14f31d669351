package agent

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/network/plan"
)

// PodNetwork is where the pods of all nodes have their addresses from: each node has a part of PodCIDR, with a
// prefix of NodeMaskSize bits. The zero value accepts any range.
type PodNetwork struct {
	PodCIDR      netip.Prefix
	NodeMaskSize int
	// Services is where Services have their addresses from; zero: the default range.
	Services netip.Prefix
}

// errForeignRange says that a node's range is none of its cluster's: routes to it would lead
// traffic astray that is not the node's.
var errForeignRange = errors.New(
	"the pod CIDR of this node is not of the cluster's pod network: delete the Node, it comes back with another",
)

// has reports whether a node can have this range.
func (n PodNetwork) has(cidr string) bool {
	p, err := netip.ParsePrefix(cidr)
	if err != nil || !n.PodCIDR.IsValid() {
		return err == nil
	}
	return p == p.Masked() && p.Bits() == n.NodeMaskSize && n.PodCIDR.Contains(p.Addr())
}

// peersOf lists the other nodes that have both an address and a range of the network, by
// name. Of several with one range, or one key, the oldest has it, and our own is nobody else's.
func peersOf(self string, all []*corev1.Node, network PodNetwork) []plan.Node {
	peers := []plan.Node{}
	taken := map[string]bool{}
	nodes := slices.Clone(all)
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return compareAge(self, a, b) })
	for _, n := range nodes {
		cidr := n.Spec.PodCIDR
		if cidr == "" || taken[cidr] || !network.has(cidr) {
			continue
		}
		taken[cidr] = true
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
