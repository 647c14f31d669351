package network

import (
	"errors"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/setpoint-io/setpoint/agent/net/network/adopt"
	"github.com/setpoint-io/setpoint/agent/net/network/bandwidth"
	"github.com/setpoint-io/setpoint/agent/net/network/link"
	"github.com/setpoint-io/setpoint/agent/net/network/nft"
)

// What is there when an agent starts was made by an earlier life of the node, which may have had other ranges, another MTU or other pods.
// It is compared with what this life wants, and mended: links here, nftables' tables by making them anew, routes to other nodes by Routes.

// defaultMTU in bytes is the kernel's for a veth pair.
const defaultMTU = 1500

// bridge is what the bridge should have.
func (n *Network) bridge(pool *addresses) adopt.Bridge {
	b := adopt.Bridge{Hardware: macOf(pool.gateway()), MTU: n.config.MTU, Addresses: pool.gateways()}
	if b.MTU == 0 {
		b.MTU = defaultMTU
	}
	for _, f := range pool.families() {
		b.Routes = append(b.Routes, n.config.Ranges.services(f).Masked())
	}
	return b
}

// adoptPods puts the pods that run back on the bridge, and takes off it what nobody knows: no rule of policies and no guard is for that.
// No pod is being connected yet: one would not be known either.
func (n *Network) adoptPods() error {
	bridge, err := netlink.LinkByName(n.config.Bridge)
	if err != nil {
		return err
	}
	seconds := map[netip.Addr]bool{}
	for _, endpoint := range n.connected {
		seconds[endpoint.Second] = true
	}
	links, err := link.List()
	errs := []error{err, adopt.Neighbours(bridge, seconds)}
	for _, l := range links {
		name := l.Attrs().Name
		endpoint, known := n.connected[name]
		switch {
		case known:
			errs = append(errs, reattach(l, bridge, endpoint))
		case isHostInterface(name) && l.Attrs().MasterIndex == bridge.Attrs().Index:
			n.config.Logger.Warn("a pod of which nothing is known is taken off the network", "interface", name)
			errs = append(errs, link.Delete(l), bandwidth.Remove(name))
		}
	}
	return errors.Join(errs...)
}

func isHostInterface(name string) bool {
	return len(name) == len(HostInterface("")) && strings.HasPrefix(name, hostInterfacePrefix)
}

// forgetSecondRange removes the tables of IPv6 of a node that has no range of it any more.
func (n *Network) forgetSecondRange(pool *addresses) error {
	if pool.second.IsValid() {
		return nil
	}
	return errors.Join(nft.DropTable(inet6.Tables, n.table()), nft.DropTable(inet6.Tables, n.portsTable()))
}

// Has reports whether a pod's addresses are of the node's ranges. A pod that has others, of an earlier life of the node, is reached by
// nobody.
func (n *Network) Has(endpoint Endpoint) bool {
	pool := n.pool()
	return pool != nil && pool.prefix.Contains(endpoint.Address) &&
		(!endpoint.Second.IsValid() || pool.second.Contains(endpoint.Second))
}
