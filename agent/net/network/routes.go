package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/agent/net/network/link"
	"github.com/setpoint-io/setpoint/agent/net/network/nodeway"
	"github.com/setpoint-io/setpoint/agent/net/network/plan"
)

const (
	// routeProtocol marks our routes, so that a later process can tell them from the administrator's.
	routeProtocol = 83
	// routesInterval is after how long a route that somebody removed, or an address or MTU of a link that changed, is noticed if nobody
	// tells of it. Changes that are told within routesPause are one.
	routesInterval = 10 * time.Second
	routesPause    = 500 * time.Millisecond
)

// RoutesConfig of Routes.
type RoutesConfig struct {
	// Mode is --pod-network; empty means auto.
	Mode plan.Mode
	// Node is this node's name and IP its address, to which the other nodes send.
	Node string
	IP   netip.Addr
	// Bridge is that of the node's pods.
	Bridge string
	// DataDir is where the node's key is.
	DataDir string
	Logger  *slog.Logger
}

// Routes leads to the pods of other nodes: by a route through a link that both nodes share, in VXLAN packets, or in encrypted
// ones of WireGuard.
type Routes struct {
	config RoutesConfig
	key    wgtypes.Key
	// read is readRoutes, except in tests.
	read func() (routingTable, error)
	// told holds one: something on the machine has changed.
	told chan struct{}

	mu       sync.Mutex
	nodes    *nodeway.Ways
	own      plan.Node
	peers    []plan.Node
	ranges   Ranges
	problems []string // as of the last look
	overlaps []string // as of the last look
}

// NewRoutes changes nothing before SetPeers. It fails when the machine cannot do what the mode says.
func NewRoutes(config RoutesConfig) (*Routes, error) {
	config.Mode = cmp.Or(config.Mode, plan.Auto)
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Routes{config: config, read: readRoutes, told: make(chan struct{}, 1), nodes: nodeway.New(cmp.Or(config.Bridge, DefaultBridge)),
		own: plan.Node{Name: config.Node, IP: config.IP, Facts: plan.Facts{Mode: config.Mode}}}
	if config.Mode == plan.Routes {
		return r, nil
	}
	if err := probeVXLAN(); err != nil {
		r.own.Facts.NoVXLAN = err.Error()
		if config.Mode == plan.VXLAN {
			return nil, fmt.Errorf("--pod-network=vxlan: %w", err)
		}
	}
	if err := r.findKey(); err != nil && config.Mode == plan.WireGuard {
		return nil, fmt.Errorf("--pod-network=wireguard: %w", err)
	}
	subnets, err := linkSubnets(config.Bridge)
	r.own.Facts.Subnets = relevant(subnets, r.own, nil)
	return r, err
}

// SetPeers makes the ways to peers: missing ones are added, changed ones replaced, others of ours removed. Of own count this
// node's pod CIDRs, before which there is no VXLAN, and its address of IPv6. A peer whose address is this machine's own (several
// agents on one machine) needs no route.
func (r *Routes) SetPeers(own plan.Node, peers []plan.Node) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own.PodCIDR, r.own.PodCIDR6, r.own.IP6 = own.PodCIDR.Masked(), own.PodCIDR6.Masked(), own.IP6
	r.peers = peers
	_, err := r.sync()
	return err
}

// Run keeps the ways as they should be until ctx ends.
func (r *Routes) Run(ctx context.Context) {
	tick := time.NewTicker(routesInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-r.told:
			wait.For(ctx, routesPause)
		}
		if ctx.Err() != nil {
			return
		}
		r.check()
	}
}

// Changed has Run look soon: something on the machine has changed. It returns at once, and any goroutine may call it.
func (r *Routes) Changed() {
	select {
	case r.told <- struct{}{}:
	default:
	}
}

// check looks at the kernel's routes once: those of others are in the table that ours were compared with.
func (r *Routes) check() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var table routingTable
	if r.peers != nil {
		table, _ = r.sync() // it has said what is wrong, and Problems does
	}
	r.lookForOverlaps(table)
}

// Facts are what the other nodes have to know of this one.
func (r *Routes) Facts() plan.Facts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.own.Facts
}

// Problems say which nodes' pods cannot be reached, and why.
func (r *Routes) Problems() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.problems)
}

// SetRanges says what the cluster's addresses are, so that others' use of them is told.
func (r *Routes) SetRanges(ranges Ranges) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ranges = ranges
	r.lookForOverlaps(nil)
}

// Overlaps say which routes of this machine lead elsewhere with addresses of the cluster.
func (r *Routes) Overlaps() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.overlaps)
}

// lookForOverlaps reads the table if it is given none. It changes nothing if that fails: the next look may not. r.mu is held.
func (r *Routes) lookForOverlaps(table routingTable) {
	var err error
	if table == nil {
		table, err = r.read()
	}
	var routes []foreignRoute
	if err == nil {
		routes, err = table.foreign(cmp.Or(r.config.Bridge, DefaultBridge))
	}
	if err != nil {
		r.config.Logger.Warn("routes of this machine cannot be read", "err", err)
		return
	}
	found := r.ranges.overlaps(routes)
	for _, overlap := range found {
		if !slices.Contains(r.overlaps, overlap) {
			r.config.Logger.Warn("addresses of the cluster are in use elsewhere", "overlap", overlap)
		}
	}
	r.overlaps = found
}

// sync compares the kernel with what it should have, and returns the table that it found; nil: it could not be read. r.mu is held.
func (r *Routes) sync() (table routingTable, err error) {
	err = r.look()
	var problems []string
	if err == nil {
		var wanted map[netip.Prefix]way
		wanted, problems = r.wanted()
		table, err = r.apply(wanted)
	}
	if err != nil {
		problems = append(problems, strings.Split(err.Error(), "\n")...)
	}
	if !slices.Equal(problems, r.problems) {
		for _, p := range problems {
			r.config.Logger.Warn("pods of another node are not reachable", "problem", p)
		}
		r.problems = problems
	}
	return table, err
}

// look reads the addresses of this machine.
func (r *Routes) look() error {
	subnets, err := linkSubnets(r.config.Bridge)
	if err != nil {
		return fmt.Errorf("addresses of this machine: %w", err)
	}
	r.own.Facts.Subnets = relevant(subnets, r.own, r.peers)
	return nil
}

// way leads to the pods of a node.
type way struct {
	node plan.Node
	by   plan.Way
}

// via is the node's address to which a route leads.
func (w way) via(prefix netip.Prefix) netip.Addr {
	if prefix.Addr().Is6() {
		return w.node.IP6
	}
	return w.node.IP
}

// wanted chooses ways to each peer, and says to which there is none.
func (r *Routes) wanted() (wanted map[netip.Prefix]way, problems []string) {
	wanted = map[netip.Prefix]way{}
	own, err := inet.localAddresses()
	if err != nil {
		return wanted, []string{err.Error()}
	}
	for _, peer := range r.peers {
		if peer.PodCIDR, peer.PodCIDR6 = peer.PodCIDR.Masked(), peer.PodCIDR6.Masked(); own[peer.IP] || peer.PodCIDR == r.own.PodCIDR {
			continue
		}
		first := plan.Choose(r.own, peer)
		if why := r.want(wanted, peer, peer.PodCIDR, first); why != "" {
			problems = append(problems, why)
		}
		if !peer.PodCIDR6.IsValid() || !r.own.PodCIDR6.IsValid() || !HasIPv6() {
			continue
		}
		second := plan.ChooseSecond(r.own, peer)
		if why := r.want(wanted, peer, peer.PodCIDR6, second); why != "" && second != first {
			problems = append(problems, why+" (IPv6)")
		}
	}
	return wanted, problems
}

// want adds the way to a peer's range, or returns why there is none.
func (r *Routes) want(wanted map[netip.Prefix]way, peer plan.Node, prefix netip.Prefix, choice plan.Choice) (problem string) {
	switch {
	case choice.Way == plan.None:
		if r.own.Facts.Mode == plan.WireGuard || peer.Facts.Mode == plan.WireGuard {
			wanted[prefix] = way{peer, plan.None} // not in the clear by another way
		}
		return fmt.Sprintf("node %s: %s", peer.Name, choice.Why)
	case choice.Way == plan.ByRoute, r.own.PodCIDR.IsValid():
		wanted[prefix] = way{peer, choice.Way}
	}
	return ""
}

// apply makes the kernel lead to the nodes wanted, and to no others. It returns the table as it was.
func (r *Routes) apply(wanted map[netip.Prefix]way) (routingTable, error) {
	vxlan, errs := r.openTunnel(wanted)
	wireguard, err := r.openEncrypted(wanted)
	errs = errors.Join(errs, err)
	table, err := r.read()
	if err != nil {
		return nil, errors.Join(errs, fmt.Errorf("routes to other nodes: %w", err))
	}
	local, err := localAddresses()
	errs = errors.Join(errs, err)
	present, reached := table.installed(), map[netip.Prefix]way{}
	for prefix, w := range wanted {
		route, err := routeOf(prefix, w, vxlan, wireguard)
		if err == nil && route.Type != unix.RTN_UNREACHABLE {
			route.Src = r.source(prefix, local)
		}
		if err == nil && !sameRoute(present[prefix], route) {
			err = netlink.RouteReplace(route)
		}
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("node %s: %s to %s via %s: %w", w.node.Name, w.by, prefix, w.via(prefix), err))
			continue
		}
		reached[prefix] = w
	}
	errs = errors.Join(errs, r.reachNodes(reached, vxlan, wireguard))
	for prefix, route := range present {
		if _, ok := wanted[prefix]; ok {
			continue
		}
		if err := netlink.RouteDel(&route); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = errors.Join(errs, fmt.Errorf("stale route to %s: %w", prefix, err))
		}
	}
	return table, errors.Join(errs, r.closeTunnel(vxlan, wanted), closeEncrypted(wanted))
}

func routeOf(prefix netip.Prefix, w way, vxlan tunnel, wireguard encrypted) (*netlink.Route, error) {
	switch w.by {
	case plan.None:
		return nowhere(prefix), nil
	case plan.ByVXLAN:
		return vxlan.route(prefix, w)
	case plan.ByWireGuard:
		return wireguard.route(prefix, w)
	}
	return plainRoute(prefix, w.via(prefix)), nil
}

// source is the address from which this machine speaks to pods of another node: that which it has for them. One who answers without saying
// from where would take another, of this node's pods. Nil: the kernel chooses, as where the node's address is not the machine's own.
func (r *Routes) source(to netip.Prefix, local map[netip.Addr]bool) net.IP {
	address := r.own.IP
	if to.Addr().Is6() {
		address = r.own.IP6
	}
	if !local[address] {
		return nil
	}
	return address.AsSlice()
}

// sameRoute: of a route through a link the kernel chose the link.
func sameRoute(present netlink.Route, wanted *netlink.Route) bool {
	unreachable := func(r *netlink.Route) bool { return r.Type == unix.RTN_UNREACHABLE }
	return unreachable(&present) == unreachable(wanted) && present.Gw.Equal(wanted.Gw) && present.MTU == wanted.MTU &&
		present.Src.Equal(wanted.Src) &&
		(wanted.LinkIndex == present.LinkIndex || wanted.LinkIndex == 0 && present.Flags&int(netlink.FLAG_ONLINK) == 0)
}

func plainRoute(prefix netip.Prefix, via netip.Addr) *netlink.Route {
	return &netlink.Route{Dst: link.IPNet(prefix), Gw: via.AsSlice(), Protocol: routeProtocol}
}
