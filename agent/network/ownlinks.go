package network

import (
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"

	"github.com/setpoint-io/setpoint/agent/network/plan"
)

// localAddresses are this machine's.
func localAddresses() (map[netip.Addr]bool, error) {
	list, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, err
	}
	own := map[netip.Addr]bool{}
	for _, entry := range list {
		if address, ok := netip.AddrFromSlice(entry.IP.To4()); ok {
			own[address] = true
		}
	}
	return own, nil
}

// linkSubnets are the subnets of this machine's links, without those of pods.
func linkSubnets(bridge string) ([]netip.Prefix, error) {
	list, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, err
	}
	ours := map[int]bool{}
	for _, name := range []string{bridge, VXLANDevice} {
		if link, err := netlink.LinkByName(name); err == nil {
			ours[link.Attrs().Index] = true
		}
	}
	var subnets []netip.Prefix
	for _, entry := range list {
		address, ok := netip.AddrFromSlice(entry.IP.To4())
		if bits, _ := entry.Mask.Size(); ok && !ours[entry.LinkIndex] && !address.IsLoopback() && bits < address.BitLen() {
			subnets = append(subnets, netip.PrefixFrom(address, bits).Masked())
		}
	}
	slices.SortFunc(subnets, netip.Prefix.Compare)
	return slices.Compact(subnets), nil
}

// relevant are the subnets that have the address of a node: others come and go, as Docker's do, and say nothing about nodes.
func relevant(subnets []netip.Prefix, own plan.Node, peers []plan.Node) []netip.Prefix {
	return slices.DeleteFunc(subnets, func(p netip.Prefix) bool {
		return !p.Contains(own.IP) && !slices.ContainsFunc(peers, func(n plan.Node) bool { return p.Contains(n.IP) })
	})
}
