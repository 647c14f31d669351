package addresses

import (
	"net/netip"
	"testing"
)

// TestReservedAddresses: they are nobody's to draw, also from another range that has them.
func TestReservedAddresses(t *testing.T) {
	ranges := serviceRanges{
		ready: []addressRange{{netip.MustParsePrefix("172.30.0.8/29"), "more"}}, own: netip.MustParsePrefix("172.30.0.0/20"),
	}
	for text, want := range map[string]bool{
		"172.30.0.1": true, "172.30.0.10": true, "172.30.0.2": false, "172.30.0.9": false, "10.96.0.1": false, "10.96.0.10": false,
	} {
		if got := ranges.reserves(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
