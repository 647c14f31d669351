package network

import (
	"fmt"
	"net/netip"
	"slices"

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

// closedPorts are the flows of UDP to host ports that lead nowhere any more.
func closedPorts(before, now map[netip.Addr][]HostPort) map[translatedFlow]bool {
	gone := map[translatedFlow]bool{}
	for pod, ports := range before {
		for _, port := range ports {
			if port.Protocol == unix.IPPROTO_UDP && !slices.Contains(now[pod], port) {
				gone[translatedFlow{netip.AddrPortFrom(port.on(), port.Port), netip.AddrPortFrom(pod, port.PodPort)}] = true
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

// goneFlows has flows to one address, or, for the unspecified one, to any.
type goneFlows map[translatedFlow]bool

// MatchConntrackFlow implements netlink.CustomConntrackFilter.
func (g goneFlows) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	service, _ := netip.AddrFromSlice(flow.Forward.DstIP)
	endpoint, _ := netip.AddrFromSlice(flow.Reverse.SrcIP)
	to := netip.AddrPortFrom(endpoint.Unmap(), flow.Reverse.SrcPort)
	return flow.Forward.Protocol == unix.IPPROTO_UDP &&
		(g[translatedFlow{netip.AddrPortFrom(service.Unmap(), flow.Forward.DstPort), to}] ||
			g[translatedFlow{netip.AddrPortFrom(netip.IPv4Unspecified(), flow.Forward.DstPort), to}])
}
