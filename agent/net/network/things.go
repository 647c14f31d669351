package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/iptables"
	"github.com/setpoint-io/setpoint/agent/net/network/link"
	"github.com/setpoint-io/setpoint/agent/net/network/upkeep"
)

// Things are what the network has made on the machine, for who holds it there.
func (n *Network) Things() []upkeep.Thing {
	return []upkeep.Thing{
		{
			Name: "the guard of what pods send", Guards: true, Whole: n.whole(func(*addresses) (bool, error) { return n.guard.Whole() }),
			PutBack: n.again(func(pool *addresses) error { return n.guard.Set(macOf(pool.gateway())) }),
		},
		{Name: "bridge " + n.config.Bridge, Whole: n.whole(n.bridgeWhole), PutBack: n.again(n.mendBridge)},
		{Name: "masquerading, host ports and forwarding of pods", Whole: n.whole(n.tablesWhole), PutBack: n.again(n.openTables)},
	}
}

// whole holds the lock; before SetPodCIDR nothing is missing.
func (n *Network) whole(look func(*addresses) (bool, error)) func() (bool, error) {
	return func() (bool, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.addresses == nil {
			return true, nil
		}
		return look(n.addresses)
	}
}

func (n *Network) again(do func(*addresses) error) func(context.Context) error {
	return func(context.Context) error {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.addresses == nil {
			return nil
		}
		return do(n.addresses)
	}
}

// bridgeWhole looks at the bridge, its addresses and routes, what the kernel is told about it, and whether the pods are on it.
func (n *Network) bridgeWhole(pool *addresses) (bool, error) {
	bridge, err := netlink.LinkByName(n.config.Bridge)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	attributes := bridge.Attrs()
	if attributes.Flags&net.FlagUp == 0 || !slices.Equal(attributes.HardwareAddr, macOf(pool.gateway())) || !n.settingsHold(pool) {
		return false, nil
	}
	list, err := link.Addresses(bridge, netlink.FAMILY_ALL)
	if err != nil {
		return false, err
	}
	for _, gateway := range pool.gateways() {
		if !slices.ContainsFunc(list, func(a netlink.Addr) bool { return a.IPNet.String() == gateway.String() }) {
			return false, nil
		}
	}
	routed, err := n.servicesRouted(bridge, pool)
	if !routed || err != nil {
		return false, err
	}
	return n.podsAreOn(bridge)
}

// gateways are the bridge's addresses.
func (a *addresses) gateways() []netip.Prefix {
	all := []netip.Prefix{netip.PrefixFrom(a.gateway(), a.prefix.Bits())}
	if a.second.IsValid() {
		all = append(all, netip.PrefixFrom(a.inSecond(a.gateway()), a.second.Bits()))
	}
	return all
}

func (n *Network) settingsHold(pool *addresses) bool {
	all := n.settings()
	if pool.second.IsValid() {
		all = append(all, setting{forwarding6, "1"})
	}
	return !slices.ContainsFunc(all, func(s setting) bool { return !s.holds() })
}

func (n *Network) servicesRouted(bridge netlink.Link, pool *addresses) (bool, error) {
	for _, f := range pool.families() {
		services := n.config.Ranges.services(f)
		if !services.IsValid() {
			continue
		}
		table, err := link.Routes(int(f.number), unix.RT_TABLE_MAIN)
		if err != nil {
			return false, err
		}
		if !slices.ContainsFunc(table, func(r netlink.Route) bool {
			return r.Dst != nil && r.LinkIndex == bridge.Attrs().Index && link.PrefixOf(r.Dst).Masked() == services.Masked()
		}) {
			return false, nil
		}
	}
	return true, nil
}

// podsAreOn reports whether each pod's interface that there is, is on the bridge and up.
func (n *Network) podsAreOn(bridge netlink.Link) (bool, error) {
	list, err := link.List()
	if err != nil {
		return false, err
	}
	for _, l := range list {
		if _, ours := n.connected[l.Attrs().Name]; ours && !isOn(l, bridge) {
			return false, nil
		}
	}
	return true, nil
}

func isOn(l, bridge netlink.Link) bool {
	return l.Attrs().MasterIndex == bridge.Attrs().Index && l.Attrs().Flags&net.FlagUp != 0
}

// mendBridge makes the bridge again if it has to, and takes the pods to it. What an interface had on another bridge goes with that.
func (n *Network) mendBridge(pool *addresses) error {
	if err := n.setUpBridge(pool); err != nil {
		return err
	}
	bridge, err := netlink.LinkByName(n.config.Bridge)
	if err != nil {
		return err
	}
	list, err := link.List()
	for _, l := range list {
		if endpoint, ours := n.connected[l.Attrs().Name]; ours {
			err = errors.Join(err, reattach(l, bridge, endpoint))
		}
	}
	return err
}

func reattach(l, bridge netlink.Link, endpoint Endpoint) (err error) {
	if !isOn(l, bridge) {
		err = errors.Join(netlink.LinkSetMaster(l, bridge), netlink.LinkSetHairpin(l, true), netlink.LinkSetUp(l))
	}
	if endpoint.Second.IsValid() { // it went with the bridge that knew it
		err = errors.Join(err, netlink.NeighSet(neighbour(bridge, endpoint.Second, macOf(endpoint.Address))))
	}
	if err != nil && !link.IsGone(err) {
		return fmt.Errorf("interface %s of the pod at %s: %w", l.Attrs().Name, endpoint.Address, err)
	}
	return nil
}

// tablesWhole looks at what openTables makes.
func (n *Network) tablesWhole(pool *addresses) (bool, error) {
	for _, f := range pool.families() {
		masquerading, err := countRules(f, n.table())
		if err != nil || masquerading == 0 {
			return false, err
		}
		ports, err := countRules(f, n.portsTable())
		if err != nil || len(n.hostPorts) > 0 && ports == 0 {
			return false, err
		}
		if accepted, err := iptables.Forward(n.config.Bridge).Accepts(f.Tables); !accepted || err != nil {
			return false, err
		}
	}
	return true, nil
}
