package network

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Ranges are from where a cluster gives addresses: Pods and Services of IPv4, the others of IPv6. What is invalid is not known, or the
// cluster has none.
type Ranges struct{ Pods, Services, Pods6, Services6 netip.Prefix }

func (r Ranges) pods(f family) netip.Prefix {
	if f.number == inet6.number {
		return r.Pods6
	}
	return r.Pods
}

func (r Ranges) services(f family) netip.Prefix {
	if f.number == inet6.number {
		return r.Services6
	}
	return r.Services
}

// dual reports whether the cluster has addresses of IPv6, and this machine can.
func (r Ranges) dual() bool { return r.Services6.IsValid() && HasIPv6() }

// foreignRoute is a route of this machine that is not of the cluster's network.
type foreignRoute struct {
	to     netip.Prefix
	device string
	// direct: the addresses are those of machines on the device's link.
	direct bool
}

// overlaps says which routes lead elsewhere with addresses of the cluster. A route through a gateway that covers more than a
// range is none of them: it is for what is nowhere nearer, as the default route.
func (r Ranges) overlaps(routes []foreignRoute) (all []string) {
	const (
		pods     = "start the servers with another --pod-cidr, or give the machine another network"
		services = "give the machine another network, or start a new cluster with another --service-cidr"
	)
	for _, of := range []struct {
		name, remedy string
		prefix       netip.Prefix
	}{
		{"pod network", pods, r.Pods}, {"pod network", pods, r.Pods6},
		{"range of Services", services, r.Services}, {"range of Services", services, r.Services6},
	} {
		for _, route := range routes {
			if !of.prefix.IsValid() || !route.to.Overlaps(of.prefix) || !route.direct && route.to.Bits() < of.prefix.Bits() {
				continue
			}
			all = append(all, fmt.Sprintf("the %s %s overlaps this machine's route to %s by %s: %s",
				of.name, of.prefix, route.to, route.device, of.remedy))
		}
	}
	slices.Sort(all)
	return all
}

// foreignRoutes are those of the main table that neither we nor the kernel for one of our devices made.
func foreignRoutes(bridge string) (all []foreignRoute, err error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	names := map[int]string{}
	for _, link := range links {
		names[link.Attrs().Index] = link.Attrs().Name
	}
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, err
	}
	ours := []string{bridge, VXLANDevice, WireGuardDevice}
	for _, route := range routes {
		device := names[route.LinkIndex]
		if route.Protocol == routeProtocol || route.Type != unix.RTN_UNICAST || route.Dst == nil || slices.Contains(ours, device) {
			continue
		}
		// A route of IPv6 to machines on the link has no scope, and no gateway.
		direct := route.Scope == netlink.SCOPE_LINK || route.Family == unix.AF_INET6 && route.Gw == nil
		if to := prefixOf(route.Dst); to.Bits() > 0 && !(to.Addr().Is6() && to.Addr().IsLinkLocalUnicast()) {
			all = append(all, foreignRoute{to, device, direct})
		}
	}
	return all, nil
}

// prefixOf is a range as this package has it.
func prefixOf(network *net.IPNet) netip.Prefix {
	address, _ := netip.AddrFromSlice(network.IP)
	bits, _ := network.Mask.Size()
	return netip.PrefixFrom(address.Unmap(), bits).Masked()
}
