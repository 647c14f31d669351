package link

import (
	"errors"
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
