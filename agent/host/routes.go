package host

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/setpoint-io/setpoint/agent"
	"github.com/setpoint-io/setpoint/agent/network"
)

// setRoutes makes the pods of other nodes reachable. A node whose address cannot
// be read is left out, and said.
func setRoutes(routes *network.Routes, peers []agent.Peer, logger *slog.Logger) {
	var reachable []network.Peer
	var errs []error
	for _, p := range peers {
		peer, err := networkPeer(p)
		if err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", p.Node, err))
			continue
		}
		reachable = append(reachable, peer)
	}
	errs = append(errs, routes.SetPeers(reachable))
	if err := errors.Join(errs...); err != nil {
		logger.Warn("pods of other nodes may not be reachable", "err", err)
	}
}

func networkPeer(p agent.Peer) (network.Peer, error) {
	cidr, err := netip.ParsePrefix(p.PodCIDR)
	if err != nil {
		return network.Peer{}, err
	}
	ip, ok := netip.AddrFromSlice(p.NodeIP)
	if !ok {
		return network.Peer{}, fmt.Errorf("no address: %q", p.NodeIP)
	}
	return network.Peer{PodCIDR: cidr, NodeIP: ip.Unmap()}, nil
}
