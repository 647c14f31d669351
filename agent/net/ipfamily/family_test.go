package ipfamily

import (
	"net/netip"
	"testing"

	"github.com/google/nftables/expr"
)

func TestBounds(t *testing.T) {
	for text, want := range map[string][2]string{
		"10.1.2.3/8": {"10.0.0.0", "10.255.255.255"}, "192.0.2.64/27": {"192.0.2.64", "192.0.2.95"}, "192.0.2.1/32": {"192.0.2.1", "192.0.2.1"},
		"0.0.0.0/0": {"0.0.0.0", "255.255.255.255"}, "fd00::1/126": {"fd00::", "fd00::3"}, "::1/128": {"::1", "::1"},
		"::/0": {"::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
	} {
		first, last := Bounds(netip.MustParsePrefix(text))
		if first != netip.MustParseAddr(want[0]) || last != netip.MustParseAddr(want[1]) {
			t.Errorf("%s: %s to %s, want %s", text, first, last, want)
		}
	}
}

// TestFamiliesReadTheirHeaders, whose form RFC 791 and RFC 8200 say.
func TestFamiliesReadTheirHeaders(t *testing.T) {
	four, six := make([]byte, 20), make([]byte, 40)
	copy(four[12:], netip.MustParseAddr("192.0.2.1").AsSlice())
	copy(four[16:], netip.MustParseAddr("192.0.2.2").AsSlice())
	copy(six[8:], netip.MustParseAddr("2001:db8::1").AsSlice())
	copy(six[24:], netip.MustParseAddr("2001:db8::2").AsSlice())
	for _, c := range []struct {
		family              Family
		header              []byte
		source, destination string
		words               uint32
	}{{V4, four, "192.0.2.1", "192.0.2.2", 1}, {V6, six, "2001:db8::1", "2001:db8::2", 4}} {
		for offset, want := range map[uint32]string{c.family.Source: c.source, c.family.Destination: c.destination} {
			load := c.family.Load(1, offset).(*expr.Payload)
			address, ok := netip.AddrFromSlice(c.header[load.Offset : load.Offset+load.Len])
			if !ok || address.String() != want || !c.family.Has(address) || c.family.Words() != c.words {
				t.Errorf("%s, want %s", address, want)
			}
		}
	}
	if V4.Has(netip.IPv6Loopback()) || V6.Has(netip.AddrFrom4([4]byte{})) || V4.Has(netip.Addr{}) {
		t.Error("a family has another's address")
	}
}
