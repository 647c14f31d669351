package strangers

import (
	"errors"
	"net"
	"net/netip"
)

var errNoHalf = errors.New("strangers: this connection cannot end in one direction alone")

// sourceBits6 is how much of an IPv6 address names a machine: the rest is its own choice.
const sourceBits6 = 64

// sourceOf is where a connection comes from. Those without an IP address are of one source, the zero Prefix.
func sourceOf(c net.Conn) netip.Prefix {
	at := c.RemoteAddr()
	if at == nil {
		return netip.Prefix{}
	}
	from, err := netip.ParseAddrPort(at.String())
	if err != nil {
		return netip.Prefix{}
	}
	address := from.Addr().Unmap().WithZone("")
	bits := address.BitLen()
	if address.Is6() {
		bits = sourceBits6
	}
	prefix, _ := address.Prefix(bits) // there are so many
	return prefix
}
