package plan

import (
	"fmt"
	"net/netip"
	"slices"
)

// Way is how packets go from the pods of one node to those of another.
type Way string

// Ways between nodes.
const (
	// Same is within one machine: nothing has to be done.
	Same Way = "same machine"
	// ByRoute is through a link that both nodes share.
	ByRoute Way = "route"
	// ByVXLAN is in packets between the nodes' addresses.
	ByVXLAN Way = "vxlan"
	// ByWireGuard is in encrypted packets between the nodes' addresses.
	ByWireGuard Way = "wireguard"
	// None is not at all.
	None Way = "none"
)

const (
	// VXLANID is the number of our network in VXLAN packets. It is not flannel's, which is 1: both can be on one machine.
	VXLANID = 83
	// VXLANPort is the UDP port of VXLAN packets on each node, which is flannel's: firewalls that let one pass let the other.
	VXLANPort = 8472
	// VXLANOverheadBytes is what VXLAN adds to a packet over IPv4: the headers of IP, UDP, VXLAN and Ethernet.
	VXLANOverheadBytes = 20 + 8 + 8 + 14
	// WireGuardPort is the UDP port of WireGuard's packets on each node, which is flannel's too.
	WireGuardPort = 51820
	// WireGuardOverheadBytes is what WireGuard adds to a packet over IPv4: the headers of IP, UDP and WireGuard, and the tag.
	WireGuardOverheadBytes = 20 + 8 + 16 + 16
)

// Choice is the way to a node, and why it is this one.
type Choice struct {
	Way Way    `json:"way"`
	Why string `json:"why"`
}

// Choose returns the way between the pods of two nodes.
func Choose(own, peer Node) Choice {
	switch {
	case !peer.PodCIDR.IsValid():
		return Choice{None, fmt.Sprintf("node %s has no pod CIDR yet", peer.Name)}
	case !peer.IP.Is4():
		return Choice{None, fmt.Sprintf("node %s has no IPv4 address", peer.Name)}
	case own.IP == peer.IP:
		return Choice{Same, "both nodes have the address " + own.IP.String()}
	}
	wants := func(m Mode) bool { return own.Facts.Mode == m || peer.Facts.Mode == m }
	switch {
	case conflict(own, peer) != "":
		return Choice{None, conflict(own, peer)}
	case wants(Routes):
		return Choice{ByRoute, asked(own, peer, Routes)}
	case wants(WireGuard):
		return byWireGuard(own, peer)
	case !wants(VXLAN) && share(own, peer) && share(peer, own):
		return Choice{ByRoute, "both nodes are on " + linkOf(own, peer)}
	}
	if wants(VXLAN) {
		return byVXLAN(own, peer, asked(own, peer, VXLAN))
	}
	return byVXLAN(own, peer, "the nodes share no link")
}

// ChooseSecond returns the way between the second addresses of the pods of two nodes, those of IPv6. Tunnels are between the nodes'
// addresses of IPv4 and take both; a route needs addresses of IPv6.
func ChooseSecond(own, peer Node) Choice {
	first := Choose(own, peer)
	if first.Way != ByRoute {
		return first
	}
	for _, n := range []Node{own, peer} {
		if !n.IP6.IsValid() {
			return withoutRoute(own, peer, fmt.Sprintf("node %s has no IPv6 address", n.Name))
		}
	}
	own.IP, peer.IP = own.IP6, peer.IP6
	switch {
	case own.Facts.Mode == Routes || peer.Facts.Mode == Routes:
		return first
	case share(own, peer) && share(peer, own):
		return Choice{ByRoute, "both nodes are on " + linkOf(own, peer)}
	}
	return withoutRoute(own, peer, "the nodes share no link with IPv6")
}

// withoutRoute is VXLAN, unless somebody wants routes only.
func withoutRoute(own, peer Node, why string) Choice {
	if own.Facts.Mode == Routes || peer.Facts.Mode == Routes {
		return Choice{None, why + ", and " + asked(own, peer, Routes)}
	}
	return byVXLAN(own, peer, why)
}

// conflict is for two nodes that each want one way to all others, and not the same. Who wants encrypted ways gets no other.
func conflict(own, peer Node) string {
	a, b := own.Facts.Mode, peer.Facts.Mode
	if free := func(m Mode) bool { return m == "" || m == Auto }; a == b || free(a) || free(b) {
		return ""
	}
	return fmt.Sprintf("node %s has --pod-network=%s and node %s has --pod-network=%s", own.Name, a, peer.Name, b)
}

// asked says which of the nodes wants that mode.
func asked(own, peer Node, m Mode) string {
	if own.Facts.Mode != m {
		own = peer
	}
	return fmt.Sprintf("node %s has --pod-network=%s", own.Name, m)
}

func byWireGuard(own, peer Node) Choice {
	why := asked(own, peer, WireGuard)
	for _, n := range []Node{own, peer} {
		switch {
		case n.Facts.NoWireGuard != "":
			return Choice{None, fmt.Sprintf("%s, and node %s cannot use WireGuard: %s", why, n.Name, n.Facts.NoWireGuard)}
		case n.Facts.WireGuardKey == "":
			return Choice{None, fmt.Sprintf("%s, and node %s has told no key: its agent is older or has not run yet", why, n.Name)}
		}
	}
	return Choice{ByWireGuard, why}
}

func byVXLAN(own, peer Node, why string) Choice {
	for _, n := range []Node{own, peer} {
		switch {
		case n.Facts.Mode == "":
			return Choice{None, fmt.Sprintf("%s, and node %s has not told that it can use VXLAN: its agent is older or has not run yet", why, n.Name)}
		case n.Facts.NoVXLAN != "":
			return Choice{None, fmt.Sprintf("%s, and node %s cannot use VXLAN: %s", why, n.Name, n.Facts.NoVXLAN)}
		}
	}
	return Choice{ByVXLAN, why}
}

// share reports whether the address of other is on a link of n. Who has told nothing is believed to share what others say.
func share(n, other Node) bool { return n.Facts.Mode == "" || linkOf(n, other) != "" }

// linkOf is the subnet of n with the address of other, "" if there is none.
func linkOf(n, other Node) string {
	i := slices.IndexFunc(n.Facts.Subnets, func(p netip.Prefix) bool { return p.Contains(other.IP) })
	if i < 0 {
		return ""
	}
	return n.Facts.Subnets[i].String()
}
