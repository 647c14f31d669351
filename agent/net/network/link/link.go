package link

import (
	"errors"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Remove removes an interface, if it is there; removed: it was.
func Remove(name string) (removed bool, err error) {
	found, err := netlink.LinkByName(name)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, Delete(found)
}

// Delete removes an interface that was found a moment ago.
func Delete(found netlink.Link) error {
	if err := netlink.LinkDel(found); err != nil && !IsGone(err) {
		return err
	}
	return nil
}

// IsGone reports an error that says that an interface, or what is named after it, is not there.
func IsGone(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.As(err, new(netlink.LinkNotFoundError)) || errors.Is(err, unix.ENODEV)
}

// AddressOf is an interface's address without its range.
func AddressOf(a netlink.Addr) netip.Addr {
	address, _ := netip.AddrFromSlice(a.IP)
	return address.Unmap()
}

// PrefixOf is a range as netip has it. An address of the range stays as it is: whoever wants none asks for Masked.
func PrefixOf(network *net.IPNet) netip.Prefix {
	address, _ := netip.AddrFromSlice(network.IP)
	bits, _ := network.Mask.Size()
	return netip.PrefixFrom(address.Unmap(), bits)
}

// IPNet is a range as netlink has it.
func IPNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// HostNet is the range of one address, as netlink has it.
func HostNet(address netip.Addr) *net.IPNet {
	return IPNet(netip.PrefixFrom(address, address.BitLen()))
}
