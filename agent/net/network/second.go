package network

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/link"
)

// inSecond is the address with the same number in the second range as the first one has in its own: who has one alone has the other
// alone too. It is invalid if there is no such range.
func (a *addresses) inSecond(address netip.Addr) netip.Addr {
	if !a.second.IsValid() {
		return netip.Addr{}
	}
	base, first, own := a.second.Addr().As16(), a.prefix.Addr().As4(), address.As4()
	for i := range own {
		base[12+i] |= own[i] ^ first[i]
	}
	return netip.AddrFrom16(base)
}

// families are those of the ranges.
func (a *addresses) families() []family {
	if a.second.IsValid() {
		return []family{inet, inet6}
	}
	return []family{inet}
}

// of is the range of a family.
func (a *addresses) of(f family) netip.Prefix {
	if f.number == inet6.number {
		return a.second
	}
	return a.prefix
}

// Addresses are the pod's, that of IPv4 first; none if it has no network of its own.
func (e Endpoint) Addresses() (all []netip.Addr) {
	for _, address := range []netip.Addr{e.Address, e.Second} {
		if address.IsValid() {
			all = append(all, address)
		}
	}
	return all
}

// in is the address of the family; invalid: there is none.
func (e Endpoint) in(f family) netip.Addr {
	if f.number == inet6.number {
		return e.Second
	}
	return e.Address
}

// IsDual reports whether the node's pods have addresses of both families.
func (n *Network) IsDual() bool {
	pool := n.pool()
	return pool != nil && pool.second.IsValid()
}

// addSecondGateway gives the bridge its address in the second range. Neighbours are not asked whether they have it: nobody else
// can, and until they had answered it could not be used.
func addSecondGateway(bridge netlink.Link, pool *addresses) error {
	if !pool.second.IsValid() {
		return nil
	}
	gateway := netip.PrefixFrom(pool.inSecond(pool.gateway()), pool.second.Bits())
	if err := netlink.AddrReplace(bridge, &netlink.Addr{IPNet: link.IPNet(gateway), Flags: unix.IFA_F_NODAD}); err != nil {
		return fmt.Errorf("address %s: %w", gateway, err)
	}
	return forwardSecond()
}

const forwarding6 = "net/ipv6/conf/all/forwarding"

// forwardSecond lets the machine route IPv6. A machine that does takes no routes from routers' advertisements any more, unless it is
// told to: an interface that did goes on doing so.
func forwardSecond() error {
	if (setting{forwarding6, "1"}).holds() {
		return nil
	}
	interfaces, err := filepath.Glob("/proc/sys/net/ipv6/conf/*/accept_ra")
	if err != nil {
		return err
	}
	for _, file := range interfaces {
		if data, err := os.ReadFile(file); err == nil && len(data) > 0 && data[0] == '1' {
			if err := os.WriteFile(file, []byte("2"), 0); err != nil {
				return err
			}
		}
	}
	return sysctl(forwarding6, "1")
}

// connectSecond gives a pod its second address, with the bridge behind it. Each end knows the other's hardware address for good, so
// that no pod can pass for another by saying that it has its address.
func connectSecond(pod *netlink.Handle, bridge netlink.Link, endpoint Endpoint, pool *addresses) error {
	if !endpoint.Second.IsValid() {
		return nil
	}
	eth0, err := pod.LinkByName(PodInterface)
	if err != nil {
		return fmt.Errorf("%s: %w", PodInterface, err)
	}
	gateway := pool.inSecond(pool.gateway())
	address := &netlink.Addr{IPNet: link.HostNet(endpoint.Second), Flags: unix.IFA_F_NODAD}
	if err := errors.Join(pod.AddrAdd(eth0, address), takeAtOnce(pod, eth0, endpoint.Second)); err != nil {
		return fmt.Errorf("address %s: %w", endpoint.Second, err)
	}
	if err := pod.NeighSet(neighbour(eth0, gateway, bridge.Attrs().HardwareAddr)); err != nil {
		return fmt.Errorf("neighbour %s: %w", gateway, err)
	}
	route := netlink.Route{LinkIndex: eth0.Attrs().Index, Gw: gateway.AsSlice(), Flags: int(netlink.FLAG_ONLINK)}
	if err := pod.RouteAdd(&route); err != nil {
		return fmt.Errorf("default route by %s: %w", gateway, err)
	}
	if err := netlink.NeighSet(neighbour(bridge, endpoint.Second, macOf(endpoint.Address))); err != nil {
		return fmt.Errorf("neighbour %s: %w", endpoint.Second, err)
	}
	return nil
}

// takeAtOnce makes the kernel take packets to an address that it was just given. It makes such a route itself, some time later: until
// then packets to it are lost.
func takeAtOnce(pod *netlink.Handle, eth0 netlink.Link, address netip.Addr) error {
	return pod.RouteAdd(&netlink.Route{
		LinkIndex: eth0.Attrs().Index, Dst: link.HostNet(address), Table: unix.RT_TABLE_LOCAL,
		Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST,
	})
}

// forgetSecond takes back what the bridge knows of a pod. Doing it again is no error.
func (n *Network) forgetSecond(endpoint Endpoint) error {
	if !endpoint.Second.IsValid() {
		return nil
	}
	bridge, err := netlink.LinkByName(n.config.Bridge)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("bridge %s: %w", n.config.Bridge, err)
	}
	err = netlink.NeighDel(neighbour(bridge, endpoint.Second, macOf(endpoint.Address)))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("neighbour %s: %w", endpoint.Second, err)
	}
	return nil
}

func neighbour(link netlink.Link, address netip.Addr, hardware []byte) *netlink.Neigh {
	return &netlink.Neigh{
		LinkIndex: link.Attrs().Index, Family: unix.AF_INET6, State: netlink.NUD_PERMANENT, IP: address.AsSlice(), HardwareAddr: hardware,
	}
}
