package loadbalancer

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// poolBitsMax bounds the addresses that a pool may have of a family: all are looked at when it is full.
const poolBitsMax = 16

// Source is where addresses come from; the zero Source gives those of the nodes.
type Source struct {
	// None leaves all Services of the type to others.
	None bool
	Pool []netip.Prefix
}

// ErrSource says what is wrong with the flag.
var ErrSource = errors.New(
	"want 'nodes', 'none' or ranges such as 192.0.2.64/27,2001:db8::40/122, with at most 65536 addresses of each family",
)

// Parse reads the flag; "" is "nodes".
func Parse(text string) (Source, error) {
	switch text {
	case "", "nodes":
		return Source{}, nil
	case "none":
		return Source{None: true}, nil
	}
	var s Source
	sizes := map[corev1.IPFamily]int{}
	for _, part := range strings.Split(text, ",") {
		p, err := netip.ParsePrefix(strings.TrimSpace(part))
		if err != nil || p.Addr().Is4In6() || p != p.Masked() || p.Addr().BitLen()-p.Bits() > poolBitsMax {
			return Source{}, fmt.Errorf("--load-balancer-addresses %q: %w", part, ErrSource)
		}
		s.Pool = append(s.Pool, p)
		family := familyOf(p.Addr())
		if sizes[family] += 1 << (p.Addr().BitLen() - p.Bits()); sizes[family] > 1<<poolBitsMax {
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

// serves reports whether the pool has addresses of a family.
func (s Source) serves(family corev1.IPFamily) bool {
	return slices.ContainsFunc(s.Pool, func(p netip.Prefix) bool { return familyOf(p.Addr()) == family })
}

// size is how many addresses of the family may be given.
func (s Source) size(family corev1.IPFamily) (n int) {
	for _, p := range s.Pool {
		if familyOf(p.Addr()) == family {
			n += 1 << (p.Addr().BitLen() - p.Bits())
			if first(p) != p.Addr() {
				n--
			}
		}
	}
	return n
}

// first is the first address of a range that is given by itself.
func first(p netip.Prefix) netip.Addr {
	if p.Addr().Is6() && p.Bits() < p.Addr().BitLen()-1 {
		return p.Addr().Next()
	}
	return p.Addr()
}

// free is the first address of the family that may be given. Network and broadcast address count: they need be no subnet's. The first
// of a range of IPv6 does not: if the range is a subnet's, all its routers have it.
func (s Source) free(family corev1.IPFamily, may func(netip.Addr) bool) (netip.Addr, bool) {
	for _, p := range s.Pool {
		if familyOf(p.Addr()) != family {
			continue
		}
		for ip := first(p); p.Contains(ip); ip = ip.Next() {
			if may(ip) {
				return ip, true
			}
		}
	}
	return netip.Addr{}, false
}

func familyOf(ip netip.Addr) corev1.IPFamily {
	if ip.Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}
