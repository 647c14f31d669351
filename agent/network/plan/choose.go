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
	for _, n := range []Node{own, peer} {
		if n.Facts.Mode == Routes {
			return byRoute(own, peer, n)
		}
	}
	forced := own.Facts.Mode == VXLAN || peer.Facts.Mode == VXLAN
	if !forced && share(own, peer) && share(peer, own) {
		return Choice{ByRoute, "both nodes are on " + linkOf(own, peer)}
	}
	return byVXLAN(own, peer, forced)
}

// byRoute is for a pair of which one node, asker, wants nothing but routes. The kernel knows whether it can have one.
func byRoute(own, peer, asker Node) Choice {
	for _, n := range []Node{own, peer} {
		if n.Facts.Mode == VXLAN {
			return Choice{None, fmt.Sprintf("node %s has --pod-network=routes and node %s has --pod-network=vxlan", asker.Name, n.Name)}
		}
	}
	return Choice{ByRoute, fmt.Sprintf("node %s has --pod-network=routes", asker.Name)}
}

func byVXLAN(own, peer Node, forced bool) Choice {
	why := "the nodes share no link"
	if forced {
		why = "a node has --pod-network=vxlan"
	}
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
