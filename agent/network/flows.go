package network

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// translatedFlow is what the kernel remembers of packets to a Service.
type translatedFlow struct{ service, endpoint netip.AddrPort }

// goneEndpoints are the flows that must not go on: UDP has no end that would tell its sender, so a client that keeps
// its port would be sent to an endpoint that is gone for as long as it tries.
func goneEndpoints(before, now []Service) map[translatedFlow]bool {
	gone := map[translatedFlow]bool{}
	for _, s := range before {
		for _, endpoint := range s.Endpoints {
			if s.Protocol == unix.IPPROTO_UDP {
				gone[translatedFlow{s.Address, endpoint}] = true
			}
		}
	}
	for _, s := range now {
		for _, endpoint := range s.Endpoints {
			if s.Protocol == unix.IPPROTO_UDP {
				delete(gone, translatedFlow{s.Address, endpoint})
			}
		}
	}
	return gone
}

func forgetFlows(gone map[translatedFlow]bool) error {
	if len(gone) == 0 {
		return nil
	}
	if _, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, unix.AF_INET, goneFlows(gone)); err != nil {
		return fmt.Errorf("forget connections to endpoints that are gone: %w", err)
	}
	return nil
}

type goneFlows map[translatedFlow]bool

// MatchConntrackFlow implements netlink.CustomConntrackFilter.
func (g goneFlows) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	service, _ := netip.AddrFromSlice(flow.Forward.DstIP)
	endpoint, _ := netip.AddrFromSlice(flow.Reverse.SrcIP)
	return flow.Forward.Protocol == unix.IPPROTO_UDP &&
		g[translatedFlow{netip.AddrPortFrom(service.Unmap(), flow.Forward.DstPort), netip.AddrPortFrom(endpoint.Unmap(), flow.Reverse.SrcPort)}]
}
