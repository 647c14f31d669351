package vxlanends

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/link"
)

// Far is the other end of VXLAN: a node's address, and the hardware address that follows from its first range.
type Far struct {
	Node netip.Addr
	MAC  string
}

// Ends are the other ends, by their addresses.
type Ends map[netip.Addr]Far

// Add tells the kernel which hardware address an end has, and behind which node's address it is.
func Add(device int, ends Ends) error {
	present, err := Present(device)
	if err != nil {
		return err
	}
	for end, to := range ends {
		for _, entry := range entriesOf(device, end, to) {
			if present[keyOf(entry)] {
				continue
			}
			if failed := netlink.NeighSet(entry); failed != nil {
				err = errors.Join(err, fmt.Errorf("entry for %s at %s: %w", end, to.Node, failed))
			}
		}
	}
	return err
}

// Remove removes the entries of other ends.
func Remove(device int, ends Ends) error {
	present, err := Present(device)
	for end, to := range ends {
		for _, entry := range entriesOf(device, end, to) {
			delete(present, keyOf(entry))
		}
	}
	for key := range present {
		if failed := netlink.NeighDel(key.entry(device)); failed != nil && !errors.Is(failed, os.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("stale entry for %s: %w", key.IP, failed))
		}
	}
	return err
}

// entriesOf are an end's: its hardware address, and the node's address behind that.
func entriesOf(device int, end netip.Addr, to Far) [2]*netlink.Neigh {
	family := unix.AF_INET
	if end.Is6() {
		family = unix.AF_INET6
	}
	return [2]*netlink.Neigh{
		Key{family, end, to.MAC}.entry(device), Key{unix.AF_BRIDGE, to.Node, to.MAC}.entry(device),
	}
}

// Key is an entry of the kernel, as far as it differs from others.
type Key struct {
	Family int
	IP     netip.Addr
	MAC    string
}

func (k Key) entry(device int) *netlink.Neigh {
	mac, _ := net.ParseMAC(k.MAC) // it is one of ours or the kernel's
	entry := &netlink.Neigh{LinkIndex: device, Family: k.Family, State: netlink.NUD_PERMANENT, IP: k.IP.AsSlice(), HardwareAddr: mac}
	if k.Family == unix.AF_BRIDGE {
		entry.Flags = netlink.NTF_SELF
	}
	return entry
}

func keyOf(entry *netlink.Neigh) Key {
	ip, _ := netip.AddrFromSlice(entry.IP)
	return Key{entry.Family, ip.Unmap(), entry.HardwareAddr.String()}
}

// Present are the entries of the device that somebody made: the kernel learns none.
func Present(device int) (map[Key]bool, error) {
	present := map[Key]bool{}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6, unix.AF_BRIDGE} {
		list, err := link.Neighbours(device, family)
		if err != nil {
			return nil, fmt.Errorf("entries: %w", err)
		}
		for i := range list {
			if list[i].Family = family; list[i].IP != nil && list[i].State&netlink.NUD_PERMANENT != 0 {
				present[keyOf(&list[i])] = true
			}
		}
	}
	return present, nil
}
