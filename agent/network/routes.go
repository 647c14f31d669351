package network

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// routeProtocol marks our routes, so that a later process can tell them from the administrator's.
const routeProtocol = 83

// Peer is another node: its pods are behind its address.
type Peer struct {
	PodCIDR netip.Prefix
	NodeIP  netip.Addr
}

// RoutesConfig of Routes.
type RoutesConfig struct {
	// PodCIDR is this node's own; a peer with the same one is ignored.
	PodCIDR netip.Prefix
	Logger  *slog.Logger
}

// Routes keeps one route per other node. The nodes must share a link (host-gw): a node that can be reached only
// through a router is logged and left out.
type Routes struct {
	config RoutesConfig
	mu     sync.Mutex
}

// NewRoutes changes nothing before SetPeers.
func NewRoutes(config RoutesConfig) *Routes { return &Routes{config: config} }

// SetPeers makes the routes equal to peers: missing ones are added, changed ones replaced, others of ours removed. A
// peer whose address is this machine's own (several agents on one machine) needs no route.
func (r *Routes) SetPeers(peers []Peer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	own, err := localAddresses()
	if err != nil {
		return fmt.Errorf("routes to other nodes: %w", err)
	}
	present, err := installed()
	if err != nil {
		return fmt.Errorf("routes to other nodes: %w", err)
	}
	wanted := wantedRoutes(peers, r.config.PodCIDR, own)
	var errs error
	for prefix, via := range wanted {
		if present[prefix] == via {
			continue
		}
		if err := netlink.RouteReplace(peerRoute(prefix, via)); err != nil {
			r.config.Logger.Warn("no route to a node's pods", "podCIDR", prefix.String(), "node", via.String(), "err", err)
			errs = errors.Join(errs, fmt.Errorf("route to %s via %s: %w", prefix, via, err))
		}
	}
	for prefix, via := range present {
		if _, ok := wanted[prefix]; ok {
			continue
		}
		if err := netlink.RouteDel(peerRoute(prefix, via)); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = errors.Join(errs, fmt.Errorf("stale route to %s: %w", prefix, err))
		}
	}
	return errs
}

func wantedRoutes(peers []Peer, ownCIDR netip.Prefix, ownAddresses map[netip.Addr]bool) map[netip.Prefix]netip.Addr {
	wanted := map[netip.Prefix]netip.Addr{}
	for _, peer := range peers {
		if !peer.PodCIDR.IsValid() || !peer.NodeIP.Is4() || ownAddresses[peer.NodeIP] || peer.PodCIDR.Masked() == ownCIDR.Masked() {
			continue
		}
		wanted[peer.PodCIDR.Masked()] = peer.NodeIP
	}
	return wanted
}

func peerRoute(prefix netip.Prefix, via netip.Addr) *netlink.Route {
	return &netlink.Route{Dst: ipNet(prefix), Gw: via.AsSlice(), Protocol: routeProtocol}
}

func installed() (map[netip.Prefix]netip.Addr, error) {
	filter := &netlink.Route{Protocol: routeProtocol}
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, filter, netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return nil, err
	}
	present := map[netip.Prefix]netip.Addr{}
	for _, route := range routes {
		if route.Dst == nil {
			continue
		}
		destination, ok := netip.AddrFromSlice(route.Dst.IP.To4())
		via, okVia := netip.AddrFromSlice(route.Gw.To4())
		bits, _ := route.Dst.Mask.Size()
		if ok && okVia {
			present[netip.PrefixFrom(destination, bits)] = via
		}
	}
	return present, nil
}

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
