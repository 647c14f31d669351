package network

import (
	"fmt"
	"net/netip"
	"slices"
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
