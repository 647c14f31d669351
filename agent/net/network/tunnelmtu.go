package network

import (
	"fmt"
	"iter"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/setpoint-io/setpoint/agent/net/network/plan"
)

// nodesBy are the addresses of the nodes that are reached in that way.
func nodesBy(by plan.Way, wanted map[netip.Prefix]way) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for _, w := range wanted {
			if w.by == by && !yield(w.node.IP) {
				return
			}
		}
	}
}

// tunnelMTUs are those of packets in packets to each node. The kernel knows by which link a node is reached.
func tunnelMTUs(nodes iter.Seq[netip.Addr], overheadBytes int) (map[netip.Addr]int, error) {
	mtus := map[netip.Addr]int{}
	for node := range nodes {
		routes, err := netlink.RouteGet(node.AsSlice())
		if err != nil || len(routes) == 0 {
			return nil, fmt.Errorf("route to node address %s: %w", node, err)
		}
		link, err := netlink.LinkByIndex(routes[0].LinkIndex)
		if err != nil {
			return nil, fmt.Errorf("link to node address %s: %w", node, err)
		}
		mtu := link.Attrs().MTU
		if routes[0].MTU > 0 {
			mtu = min(mtu, routes[0].MTU)
		}
		mtus[node] = mtu - overheadBytes
	}
	return mtus, nil
}
