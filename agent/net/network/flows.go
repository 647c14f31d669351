package network

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// staleFlows are those that must not go on: UDP has no end that would tell its sender, so a client that keeps its port would be
// sent to an endpoint that is gone, or not translated at all, for as long as it tries. For each address, the endpoints to which
// flows may lead; for the unspecified one, any address of this machine is meant.
type staleFlows map[netip.AddrPort][]netip.AddrPort

// flowsOf are those of all Services that have changed.
func flowsOf(before, now []Service) staleFlows {
	stale := staleFlows{}
	for _, s := range before {
		if s.isUDP() {
			stale[s.Address] = nil
		}
	}
	for _, s := range now {
		if s.isUDP() {
			stale[s.Address] = s.allEndpoints()
		}
	}
	return stale
}

// closedPorts are the flows of UDP to host ports that lead nowhere any more.
func (f family) closedPorts(before, now map[netip.Addr]Endpoint) staleFlows {
	stale := staleFlows{}
	for pod, endpoint := range before {
		for _, port := range endpoint.HostPorts {
			if port.Protocol == unix.IPPROTO_UDP && port.in(f) && !slices.Contains(now[pod].HostPorts, port) {
				stale[netip.AddrPortFrom(port.on(f), port.Port)] = nil
			}
		}
	}
	return stale
}

func (f family) forgetFlows(stale staleFlows) error {
	if len(stale) == 0 {
		return nil
	}
	own, err := f.localAddresses()
	if err != nil {
		return fmt.Errorf("forget connections to endpoints that are gone: %w", err)
	}
	filter := flowFilter{f, stale, own}
	if _, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, netlink.InetFamily(f.number), filter); err != nil {
		return fmt.Errorf("forget connections to endpoints that are gone: %w", err)
	}
	return nil
}

type flowFilter struct {
	family family
	stale  staleFlows
	own    map[netip.Addr]bool
}

// MatchConntrackFlow implements netlink.CustomConntrackFilter.
func (f flowFilter) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	if flow.Forward.Protocol != unix.IPPROTO_UDP {
		return false
	}
	to, from := endOf(flow.Forward.DstIP, flow.Forward.DstPort), endOf(flow.Reverse.SrcIP, flow.Reverse.SrcPort)
	allowed, known := f.stale[to]
	if !known && (f.own[to.Addr()] || to.Addr().IsLoopback()) {
		allowed, known = f.stale[netip.AddrPortFrom(f.family.unspecified, to.Port())]
	}
	return known && !slices.Contains(allowed, from)
}

func endOf(ip []byte, port uint16) netip.AddrPort {
	address, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(address.Unmap(), port)
}
