package auth

import (
	"context"
	"net/netip"
)

// ClientAddressKey is the key of a request's context under which is from where its connection comes, as in http.Request.RemoteAddr.
type ClientAddressKey struct{}

// ClientAddress is from where a request comes; ok is false if it came over no network.
func ClientAddress(ctx context.Context) (ip netip.Addr, ok bool) {
	text, _ := ctx.Value(ClientAddressKey{}).(string)
	at, err := netip.ParseAddrPort(text)
	return at.Addr().Unmap().WithZone(""), err == nil
}
