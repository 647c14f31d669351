package loadbalancer

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// poolMax is how many addresses a pool may have: all are looked at when it is full.
const poolMax = 1 << 16

// Source is where addresses come from; the zero Source gives those of the nodes.
type Source struct {
	// None leaves all Services of the type to others.
	None bool
	Pool []netip.Prefix
}

// ErrSource says what is wrong with the flag.
var ErrSource = errors.New("want 'nodes', 'none' or ranges of IPv4 such as 192.0.2.64/27, with at most 65536 addresses")

// Parse reads the flag; "" is "nodes".
func Parse(text string) (Source, error) {
	switch text {
	case "", "nodes":
		return Source{}, nil
	case "none":
		return Source{None: true}, nil
	}
	var s Source
	size := 0
	for _, part := range strings.Split(text, ",") {
		p, err := netip.ParsePrefix(strings.TrimSpace(part))
		if err != nil || !p.Addr().Is4() || p != p.Masked() {
			return Source{}, fmt.Errorf("--load-balancer-addresses %q: %w", part, ErrSource)
		}
		s.Pool = append(s.Pool, p)
		if size += 1 << (32 - p.Bits()); size > poolMax {
			return Source{}, fmt.Errorf("--load-balancer-addresses %q: %w", text, ErrSource)
		}
	}
	return s, nil
}

func (s Source) has(ip netip.Addr) bool {
	for _, p := range s.Pool {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// free is the first address of the pool that is not taken. Network and broadcast address count: they need be no subnet's.
func (s Source) free(taken map[netip.Addr]bool) (netip.Addr, bool) {
	for _, p := range s.Pool {
		for ip := p.Addr(); p.Contains(ip); ip = ip.Next() {
			if !taken[ip] {
				return ip, true
			}
		}
	}
	return netip.Addr{}, false
}
