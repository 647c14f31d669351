package network

import (
	"fmt"
	"net/netip"

	"github.com/setpoint-io/setpoint/agent/net/ipfamily"
	"github.com/setpoint-io/setpoint/agent/net/network/probe"
)

// Lend gives a place of a pod, for a probe, until it is given back. It is not on disk: an agent that was killed has given it back.
func (n *Network) Lend() (place probe.Place, giveBack func(), err error) {
	pool := n.pool()
	if pool == nil {
		return place, nil, ErrNoPodCIDR
	}
	address, err := pool.borrow()
	if err != nil {
		return place, nil, err
	}
	place = probe.Place{
		Bridge: n.config.Bridge, Gateway: pool.gateway(), Address: address, Hardware: macOf(address), MTU: n.config.MTU,
	}
	return place, func() { pool.release(address) }, nil
}

// borrow takes the free address that comes last, so that the order in which pods get theirs stays as it is.
func (a *addresses) borrow() (netip.Addr, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, broadcast := ipfamily.Bounds(a.prefix)
	for candidate := broadcast.Prev(); candidate != a.gateway(); candidate = candidate.Prev() {
		if !a.used[candidate] {
			a.used[candidate] = true
			return candidate, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("%w in %s", ErrNoAddress, a.prefix)
}
