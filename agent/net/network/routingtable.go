package network

import (
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/link"
)

// routingTable is the kernel's main one, of both families.
type routingTable []netlink.Route

// readRoutes has the kernel send the whole table, which may be long: it has no other way to tell of routes by who made them.
func readRoutes() (routingTable, error) {
	return link.Routes(netlink.FAMILY_ALL, unix.RT_TABLE_MAIN)
}

// installed are our routes, for those who need no others.
func installed() (map[netip.Prefix]netlink.Route, error) {
	table, err := readRoutes()
	return table.installed(), err
}

// installed are our routes.
func (t routingTable) installed() map[netip.Prefix]netlink.Route {
	present := map[netip.Prefix]netlink.Route{}
	for _, route := range t {
		if route.Dst != nil && route.Protocol == routeProtocol {
			present[link.PrefixOf(route.Dst).Masked()] = route
		}
	}
	return present
}

// foreign are those that neither we nor the kernel for one of our devices made.
func (t routingTable) foreign(bridge string) (all []foreignRoute, err error) {
	links, err := link.List()
	if err != nil {
		return nil, err
	}
	names := map[int]string{}
	for _, link := range links {
		names[link.Attrs().Index] = link.Attrs().Name
	}
	ours := []string{bridge, VXLANDevice, WireGuardDevice}
	for _, route := range t {
		device := names[route.LinkIndex]
		if route.Protocol == routeProtocol || route.Type != unix.RTN_UNICAST || route.Dst == nil || slices.Contains(ours, device) {
			continue
		}
		// A route of IPv6 to machines on the link has no scope, and no gateway.
		direct := route.Scope == netlink.SCOPE_LINK || route.Family == unix.AF_INET6 && route.Gw == nil
		if to := link.PrefixOf(route.Dst).Masked(); to.Bits() > 0 && !(to.Addr().Is6() && to.Addr().IsLinkLocalUnicast()) {
			all = append(all, foreignRoute{to, device, direct})
		}
	}
	return all, nil
}
