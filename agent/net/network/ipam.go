package network

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

var (
	// ErrNoAddress says that every address of the node's pod CIDR is in use.
	ErrNoAddress = errors.New("no free pod address")
	// ErrNoPodCIDR says that the node has not been given its pod CIDR yet.
	ErrNoPodCIDR = errors.New("node has no pod CIDR yet")
)

const lastAddressFile = "last-address"

// addresses hands out host addresses of one prefix in turn. The first is the gateway's, the last the broadcast's. second is the
// node's range of IPv6; invalid: its pods have none.
type addresses struct {
	mu     sync.Mutex
	prefix netip.Prefix
	second netip.Prefix
	used   map[netip.Addr]bool
	last   netip.Addr
	// dir keeps the last address over restarts, so that a freed one is not handed out at once.
	dir string
}

func newAddresses(prefix, second netip.Prefix, dir string) *addresses {
	a := &addresses{prefix: prefix.Masked(), second: second.Masked(), used: map[netip.Addr]bool{}, dir: dir}
	a.last = a.gateway()
	if dir == "" {
		return a
	}
	if data, err := os.ReadFile(filepath.Join(dir, lastAddressFile)); err == nil {
		if last, err := netip.ParseAddr(strings.TrimSpace(string(data))); err == nil && a.prefix.Contains(last) {
			a.last = last
		}
	}
	return a
}

func (a *addresses) gateway() netip.Addr { return a.prefix.Addr().Next() }

func (a *addresses) allocate() (netip.Addr, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	candidate := a.last
	for range 1 << (32 - a.prefix.Bits()) {
		candidate = candidate.Next()
		// The address after the candidate outside the prefix means that the candidate is the broadcast address.
		if !a.prefix.Contains(candidate) || !a.prefix.Contains(candidate.Next()) {
			candidate = a.gateway()
			continue
		}
		if !a.used[candidate] && candidate != a.gateway() {
			a.used[candidate] = true
			a.remember(candidate)
			return candidate, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("%w in %s", ErrNoAddress, a.prefix)
}

// remember is best effort: losing it costs only the order.
func (a *addresses) remember(address netip.Addr) {
	a.last = address
	if a.dir != "" {
		_ = os.WriteFile(filepath.Join(a.dir, lastAddressFile), []byte(address.String()), 0o644)
	}
}

func (a *addresses) reserve(address netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used[address] = true
}

func (a *addresses) release(address netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.used, address)
}
