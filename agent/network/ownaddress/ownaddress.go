package ownaddress

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/setpoint-io/setpoint/agent/network/link"
)

// Holder holds the address, on the loopback interface, under a label that says that it is ours. It has no state.
type Holder struct{}

const (
	loopbackInterface = "lo"
	ownLabel          = loopbackInterface + ":setpoint"
)

// Hold makes address the machine's, and takes away an earlier one. The zero Addr: none. It changes nothing if all is so already.
func (Holder) Hold(address netip.Addr) error {
	loopback, have, err := ownAddresses()
	if err != nil {
		return err
	}
	held := false
	var errs []error
	for _, a := range have {
		if link.AddressOf(a) == address {
			held = true
			continue
		}
		errs = append(errs, netlink.AddrDel(loopback, &a))
	}
	if address.IsValid() && !held {
		own := &netlink.Addr{IPNet: link.HostNet(address), Label: ownLabel, Scope: int(netlink.SCOPE_HOST)}
		errs = append(errs, netlink.AddrAdd(loopback, own))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("own address %s: %w", address, err)
	}
	return nil
}

// Held is the address that the machine has; the zero Addr if there is none.
func (Holder) Held() netip.Addr {
	_, have, err := ownAddresses()
	if err != nil || len(have) == 0 {
		return netip.Addr{}
	}
	return link.AddressOf(have[0])
}

func ownAddresses() (netlink.Link, []netlink.Addr, error) {
	loopback, err := netlink.LinkByName(loopbackInterface)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", loopbackInterface, err)
	}
	all, err := link.Addresses(loopback, netlink.FAMILY_V4)
	if err != nil {
		return nil, nil, fmt.Errorf("addresses of %s: %w", loopbackInterface, err)
	}
	var own []netlink.Addr
	for _, a := range all {
		if a.Label == ownLabel {
			own = append(own, a)
		}
	}
	return loopback, own, nil
}
