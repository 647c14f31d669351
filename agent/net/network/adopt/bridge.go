package adopt

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/link"
)

// Bridge is what a bridge should have.
type Bridge struct {
	Hardware net.HardwareAddr
	// MTU in bytes.
	MTU int
	// Addresses are its own, with the ranges behind it; addresses of the link are not looked at.
	Addresses []netip.Prefix
	// Routes are the ranges that are led to it, beside those of its addresses.
	Routes []netip.Prefix
}

// Mend changes what differs, and removes what is too much; it adds no addresses and no routes.
func (b Bridge) Mend(bridge netlink.Link) error {
	if bridge.Type() != "bridge" {
		return fmt.Errorf("is a %s of somebody else's: remove it, or rename it", bridge.Type())
	}
	var err error
	if bridge.Attrs().MTU != b.MTU {
		err = netlink.LinkSetMTU(bridge, b.MTU)
	}
	if !slices.Equal(bridge.Attrs().HardwareAddr, b.Hardware) {
		err = errors.Join(err, netlink.LinkSetHardwareAddr(bridge, b.Hardware))
	}
	return errors.Join(err, b.forgetAddresses(bridge), b.forgetRoutes(bridge))
}

// forgetAddresses removes those of other ranges: the kernel would look for another node's pods behind the bridge.
func (b Bridge) forgetAddresses(bridge netlink.Link) error {
	present, err := link.Addresses(bridge, netlink.FAMILY_ALL)
	for _, a := range present {
		if a.Scope != unix.RT_SCOPE_LINK && !slices.Contains(b.Addresses, link.PrefixOf(a.IPNet)) {
			err = errors.Join(err, netlink.AddrDel(bridge, &a))
		}
	}
	return err
}

// forgetRoutes removes those to ranges of Services that the cluster does not have: nothing else is led to the bridge as such.
func (b Bridge) forgetRoutes(bridge netlink.Link) error {
	present, err := link.Routes(netlink.FAMILY_ALL, unix.RT_TABLE_MAIN)
	for _, route := range present {
		ours := route.LinkIndex == bridge.Attrs().Index && route.Protocol != unix.RTPROT_KERNEL && route.Dst != nil && route.Gw == nil
		if ours && !slices.Contains(b.Routes, link.PrefixOf(route.Dst)) {
			err = errors.Join(err, ignoreGone(netlink.RouteDel(&route)))
		}
	}
	return err
}

// Neighbours removes those of IPv6 that the bridge knows for good, but for the pods that run.
func Neighbours(bridge netlink.Link, pods map[netip.Addr]bool) error {
	present, err := link.Neighbours(bridge.Attrs().Index, netlink.FAMILY_V6)
	for _, entry := range present {
		address, _ := netip.AddrFromSlice(entry.IP)
		if entry.State&netlink.NUD_PERMANENT != 0 && !address.IsMulticast() && !pods[address] {
			err = errors.Join(err, ignoreGone(netlink.NeighDel(&entry)))
		}
	}
	return err
}

func ignoreGone(err error) error {
	if link.IsGone(err) || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}
