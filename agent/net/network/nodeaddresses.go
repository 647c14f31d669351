package network

import (
	"net/netip"

	"github.com/setpoint-io/setpoint/agent/net/network/nodeway"
	"github.com/setpoint-io/setpoint/agent/net/network/plan"
)

// reachNodes leads this node's pods to the addresses of other nodes by the ways to their pods, as far as these could be made. To a node to
// which there is no way they go as to any other machine, which sees this node's address.
func (r *Routes) reachNodes(reached map[netip.Prefix]way, vxlan tunnel, wireguard encrypted) error {
	var pods []netip.Prefix
	for _, p := range []netip.Prefix{r.own.PodCIDR, r.own.PodCIDR6} {
		if p.IsValid() {
			pods = append(pods, p)
		}
	}
	var ways []nodeway.Way
	for address, prefix := range nodeAddresses(reached) {
		w := nodeway.Way{Node: address}
		if by := reached[prefix]; by.by != plan.ByRoute {
			route, err := routeOf(prefix, by, vxlan, wireguard)
			if err != nil {
				continue // the way to the pods says so
			}
			w.Route = route
		}
		ways = append(ways, w)
	}
	return r.nodes.Set(pods, ways)
}

// nodeAddresses are the addresses of nodes to which there is a way, with the range of pods to which it leads. One that several nodes say
// they have is nobody's.
func nodeAddresses(wanted map[netip.Prefix]way) map[netip.Addr]netip.Prefix {
	all, owner := map[netip.Addr]netip.Prefix{}, map[netip.Addr]string{}
	for prefix, w := range wanted {
		address := w.via(prefix)
		if w.by == plan.None || !address.IsGlobalUnicast() {
			continue
		}
		if other, claimed := owner[address]; claimed && other != w.node.Name {
			delete(all, address)
			continue
		}
		owner[address], all[address] = w.node.Name, prefix
	}
	return all
}
