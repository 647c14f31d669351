package servicerange

import (
	"net/netip"
	"strings"
)

// Split reads one range of IPv4, or that and one of IPv6 behind a comma; ok: it is one of the two.
func Split(text string) (four, six netip.Prefix, ok bool) {
	first, second, dual := strings.Cut(text, ",")
	four, err := netip.ParsePrefix(first)
	if err != nil || !four.Addr().Is4() {
		return netip.Prefix{}, netip.Prefix{}, false
	}
	if !dual {
		return four, six, true
	}
	six, err = netip.ParsePrefix(second)
	if err != nil || !six.Addr().Is6() || six.Addr().Is4In6() {
		return netip.Prefix{}, netip.Prefix{}, false
	}
	return four, six, true
}

// Join is what Split reads; six may be zero.
func Join(four, six netip.Prefix) string { return strings.Join(Texts(four, six), ",") }

// Texts are the ranges that are not zero, that of IPv4 first.
func Texts(four, six netip.Prefix) []string {
	texts := []string{four.String()}
	if six.IsValid() {
		texts = append(texts, six.String())
	}
	return texts
}
