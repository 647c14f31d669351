package addresses

import (
	"net/netip"
	"testing"
)

// TestReservedAddresses: they are nobody's to draw, also from another range that has them.
func TestReservedAddresses(t *testing.T) {
	ranges := serviceRanges{
		ready: []addressRange{{netip.MustParsePrefix("172.30.0.8/29"), "more"}},
		own:   []netip.Prefix{netip.MustParsePrefix("172.30.0.0/20"), netip.MustParsePrefix("fd96::/112")},
	}
	for text, want := range map[string]bool{
		"172.30.0.1": true, "172.30.0.10": true, "172.30.0.2": false, "172.30.0.9": false, "10.96.0.1": false, "10.96.0.10": false,
		"fd96::1": true, "fd96::a": true, "fd96::2": false, "fd96::10": false,
	} {
		if got := ranges.reserves(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestDraw: what is drawn is of the range, and neither its first address nor, in IPv4, its last one.
func TestDraw(t *testing.T) {
	for text, want := range map[string]int{
		"10.1.0.0/30": 2, "10.1.0.0/31": 0, "10.1.0.1/32": 0, "10.1.0.0/29": 6,
		"fd96::/126": 3, "fd96::/127": 1, "fd96::1/128": 0, "fd96::/64": 2000, "fd00::/8": 2000, "::/0": 2000,
	} {
		r, drawn := addressRange{prefix: netip.MustParsePrefix(text)}, map[netip.Addr]bool{}
		for range 2000 {
			ip, ok := r.draw()
			if !ok {
				continue
			}
			if drawn[ip] = true; !r.prefix.Contains(ip) || ip == r.prefix.Addr() || !r.holds(ip) {
				t.Errorf("%s: drew %s", text, ip)
			}
		}
		if len(drawn) != want {
			t.Errorf("%s: %d addresses, want %d", text, len(drawn), want)
		}
	}
}
