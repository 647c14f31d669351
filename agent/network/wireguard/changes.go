package wireguard

import (
	"net"
	"net/netip"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
)

// Config is what a device should be.
type Config struct {
	Key   wgtypes.Key
	Port  int
	Peers []Peer
}

// Peer is the device of another node.
type Peer struct {
	// Key is its public key. Two peers with one key are one peer: the last has it.
	Key wgtypes.Key
	// Endpoint is where it listens.
	Endpoint netip.AddrPort
	// Range has the addresses to which packets go there, and from which they are taken from there.
	Range netip.Prefix
}

// keepalive is when an end sends a packet though it has nothing to say. It does so first when it is told of a peer: a device that
// begins anew has lost the keys that both had agreed upon, and the peer would notice only after fifteen seconds.
const keepalive = time.Minute

// changes are what is to be told a device; none says that there is nothing.
func changes(present *wgtypes.Device, wanted Config) (c wgtypes.Config, none bool) {
	none = true
	if present.PrivateKey != wanted.Key {
		c.PrivateKey, none = &wanted.Key, false
	}
	if present.ListenPort != wanted.Port {
		c.ListenPort, none = &wanted.Port, false
	}
	peers := map[wgtypes.Key]Peer{}
	for _, p := range wanted.Peers {
		peers[p.Key] = p
	}
	for _, p := range present.Peers {
		if w, ok := peers[p.PublicKey]; !ok {
			c.Peers = append(c.Peers, wgtypes.PeerConfig{PublicKey: p.PublicKey, Remove: true})
		} else if same(p, w) {
			delete(peers, p.PublicKey)
		}
	}
	for _, p := range wanted.Peers {
		if peers[p.Key] == p {
			c.Peers = append(c.Peers, p.config())
		}
	}
	return c, none && len(c.Peers) == 0
}

// config keeps the keys that the two ends have agreed upon.
func (p Peer) config() wgtypes.PeerConfig {
	interval := keepalive
	return wgtypes.PeerConfig{
		PublicKey: p.Key, Endpoint: net.UDPAddrFromAddrPort(p.Endpoint), PersistentKeepaliveInterval: &interval,
		ReplaceAllowedIPs: true, AllowedIPs: []net.IPNet{*ipNet(p.Range)},
	}
}

func same(present wgtypes.Peer, wanted Peer) bool {
	return present.PersistentKeepaliveInterval == keepalive &&
		present.Endpoint != nil && unmapped(present.Endpoint.AddrPort()) == wanted.Endpoint &&
		len(present.AllowedIPs) == 1 && present.AllowedIPs[0].String() == ipNet(wanted.Range).String()
}

func unmapped(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
