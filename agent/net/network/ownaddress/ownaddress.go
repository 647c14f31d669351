package ownaddress

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/vishvananda/netlink"

	"github.com/setpoint-io/setpoint/agent/net/network/link"
	"github.com/setpoint-io/setpoint/agent/net/network/upkeep"
)

// Holder holds the address, on the loopback interface, under a label that says that it is ours. It is safe for concurrent use.
type Holder struct {
	from, to uint16
	mu       sync.Mutex
	wanted   netip.Addr // the zero Addr: none
	led      netip.Addr // of which this Holder has made the table
}

// New leads what is sent to the address at port from, of UDP and TCP, to its port to. If they are the same, nothing is led.
func New(from, to uint16) *Holder { return &Holder{from: from, to: to} }

const (
	loopbackInterface = "lo"
	ownLabel          = loopbackInterface + ":setpoint"
)

// Hold makes address the machine's, and takes away an earlier one. The zero Addr: none. It changes nothing if all is so already.
func (h *Holder) Hold(address netip.Addr) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wanted = address
	if err := errors.Join(h.lead(), hold(address)); err != nil {
		return fmt.Errorf("own address %s: %w", address, err)
	}
	return nil
}

func hold(address netip.Addr) error {
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
	return errors.Join(errs...)
}

// Held is the address that the machine has; the zero Addr if there is none.
func (h *Holder) Held() netip.Addr {
	_, have, err := ownAddresses()
	if err != nil || len(have) == 0 {
		return netip.Addr{}
	}
	return link.AddressOf(have[0])
}

// Thing is the address with what leads to its port, for who holds things on the machine.
func (h *Holder) Thing() upkeep.Thing {
	return upkeep.Thing{
		Name: "the address of the cluster's DNS", Whole: h.whole,
		PutBack: func(context.Context) error {
			h.mu.Lock()
			wanted := h.wanted
			h.mu.Unlock()
			return h.Hold(wanted)
		},
	}
}

// whole: nothing is missing while no address is wanted.
func (h *Holder) whole() (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.wanted.IsValid() {
		return true, nil
	}
	if h.Held() != h.wanted {
		return false, nil
	}
	return h.leads()
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
