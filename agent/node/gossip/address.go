package gossip

import (
	"context"
	"log/slog"
	"net"
)

// AdvertiseIP is a server's own address, by which everybody reaches it; empty
// when it is not known or a loopback that others lack.
func AdvertiseIP(ctx context.Context, endpoint string, logger *slog.Logger) string {
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		return ""
	}
	if net.ParseIP(host) != nil {
		return host
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
	if err != nil || len(addresses) == 0 || addresses[0].IsLoopback() {
		logger.Debug("gossip advertises the machine's private address", "host", host, "err", err)
		return ""
	}
	return addresses[0].Unmap().String()
}

// BindsAll reports whether a bind address is for all addresses of the machine, so
// that it does not say where others find it.
func BindsAll(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "" || net.ParseIP(host).IsUnspecified())
}
