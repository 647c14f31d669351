package network

import (
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/link"
	"github.com/setpoint-io/setpoint/agent/net/network/plan"
)

// localAddresses are this machine's, of the family.
func (f family) localAddresses() (map[netip.Addr]bool, error) { return addressesOfLinks(int(f.number)) }

// localAddresses are this machine's, of both.
func localAddresses() (map[netip.Addr]bool, error) { return addressesOfLinks(netlink.FAMILY_ALL) }

func addressesOfLinks(family int) (map[netip.Addr]bool, error) {
	list, err := link.Addresses(nil, family)
	if err != nil {
		return nil, err
	}
	own := map[netip.Addr]bool{}
	for _, entry := range list {
		own[link.AddressOf(entry)] = true
	}
	return own, nil
}

// linkSubnets are the subnets of this machine's links, without those of pods.
func linkSubnets(bridge string) ([]netip.Prefix, error) {
	list, err := link.Addresses(nil, netlink.FAMILY_ALL)
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
		address := link.AddressOf(entry)
		local := address.IsLoopback() || address.IsLinkLocalUnicast() && address.Is6()
		if bits, _ := entry.Mask.Size(); !ours[entry.LinkIndex] && !local && bits < address.BitLen() {
			subnets = append(subnets, netip.PrefixFrom(address, bits).Masked())
		}
	}
	slices.SortFunc(subnets, netip.Prefix.Compare)
	return slices.Compact(subnets), nil
}

// relevant are the subnets that have the address of a node: others come and go, as Docker's do, and say nothing about nodes.
func relevant(subnets []netip.Prefix, own plan.Node, peers []plan.Node) []netip.Prefix {
	return slices.DeleteFunc(subnets, func(p netip.Prefix) bool {
		has := func(n plan.Node) bool { return p.Contains(n.IP) || p.Contains(n.IP6) }
		return !has(own) && !slices.ContainsFunc(peers, has)
	})
}

// SecondAddress is an address of IPv6 that others can reach, of the link that has an address of IPv4; nil if there is none.
func SecondAddress(first net.IP) (net.IP, error) {
	list, err := link.Addresses(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(a netlink.Addr) bool { return a.IP.Equal(first) })
	if i < 0 {
		return nil, nil
	}
	const passing = unix.IFA_F_TEMPORARY | unix.IFA_F_DEPRECATED | unix.IFA_F_TENTATIVE | unix.IFA_F_DADFAILED
	for _, a := range list {
		if a.LinkIndex == list[i].LinkIndex && a.IP.To4() == nil && a.Scope == unix.RT_SCOPE_UNIVERSE && a.Flags&passing == 0 {
			return a.IP, nil
		}
	}
	return nil, nil
}
