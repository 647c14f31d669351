package records

import (
	"net/netip"
	"slices"
	"strings"
)

const (
	reverse4 = ".in-addr.arpa."
	reverse6 = ".ip6.arpa."
)

// reversed is the address that a name in lower case is about.
func reversed(name string) (netip.Addr, bool) {
	if below, ok := strings.CutSuffix(name, reverse4); ok {
		labels := strings.Split(below, ".")
		slices.Reverse(labels)
		address, err := netip.ParseAddr(strings.Join(labels, "."))
		return address, err == nil && address.Is4()
	}
	below, ok := strings.CutSuffix(name, reverse6)
	if !ok {
		return netip.Addr{}, false
	}
	labels := strings.Split(below, ".")
	if len(labels) != 32 || slices.ContainsFunc(labels, func(l string) bool { return len(l) != 1 }) {
		return netip.Addr{}, false
	}
	slices.Reverse(labels)
	var text strings.Builder
	for i, digit := range labels {
		if i > 0 && i%4 == 0 {
			text.WriteByte(':')
		}
		text.WriteString(digit)
	}
	address, err := netip.ParseAddr(text.String())
	return address, err == nil
}

// dashed is an address as a label.
func dashed(address netip.Addr) string {
	return strings.Map(func(r rune) rune {
		if r == '.' || r == ':' {
			return '-'
		}
		return r
	}, address.String())
}

// undashed is the address of such a label.
func undashed(label string) (netip.Addr, bool) {
	if strings.Count(label, "-") == 3 && !strings.Contains(label, "--") {
		address, err := netip.ParseAddr(strings.ReplaceAll(label, "-", "."))
		return address, err == nil && address.Is4()
	}
	address, err := netip.ParseAddr(strings.ReplaceAll(label, "-", ":"))
	return address, err == nil && address.Is6() && address.Zone() == ""
}
