package network

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Ranges are from where a cluster gives addresses. What is invalid is not known.
type Ranges struct{ Pods, Services netip.Prefix }

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
	for _, of := range []struct {
		name, remedy string
		prefix       netip.Prefix
	}{
		{"pod network", "start the servers with another --pod-cidr, or give the machine another network", r.Pods},
		{"range of Services", "give the machine another network, or start a new cluster with another --service-cidr", r.Services},
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
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, err
	}
	ours := []string{bridge, VXLANDevice, WireGuardDevice}
	for _, route := range routes {
		device := names[route.LinkIndex]
		if route.Protocol == routeProtocol || route.Type != unix.RTN_UNICAST || route.Dst == nil || slices.Contains(ours, device) {
			continue
		}
		to, ok := netip.AddrFromSlice(route.Dst.IP.To4())
		if bits, _ := route.Dst.Mask.Size(); ok && bits > 0 {
			all = append(all, foreignRoute{netip.PrefixFrom(to, bits).Masked(), device, route.Scope == netlink.SCOPE_LINK})
		}
	}
	return all, nil
}
