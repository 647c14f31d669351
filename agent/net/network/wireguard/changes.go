package wireguard

import (
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/setpoint-io/setpoint/agent/net/network/link"
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
	// Ranges have the addresses to which packets go there, and from which they are taken from there, in order.
	Ranges []netip.Prefix
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
	missing := map[wgtypes.Key]int{} // by their places: the last peer with a key has it
	for i, p := range wanted.Peers {
		missing[p.Key] = i
	}
	for _, p := range present.Peers {
		if i, ok := missing[p.PublicKey]; !ok {
			c.Peers = append(c.Peers, wgtypes.PeerConfig{PublicKey: p.PublicKey, Remove: true})
		} else if same(p, wanted.Peers[i]) {
			delete(missing, p.PublicKey)
		}
	}
	for i, p := range wanted.Peers {
		if place, ok := missing[p.Key]; ok && place == i {
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
		ReplaceAllowedIPs: true, AllowedIPs: p.allowed(),
	}
}

func (p Peer) allowed() (all []net.IPNet) {
	for _, prefix := range p.Ranges {
		all = append(all, *link.IPNet(prefix))
	}
	return all
}

func same(present wgtypes.Peer, wanted Peer) bool {
	return present.PersistentKeepaliveInterval == keepalive &&
		present.Endpoint != nil && unmapped(present.Endpoint.AddrPort()) == wanted.Endpoint &&
		slices.Equal(texts(present.AllowedIPs), texts(wanted.allowed()))
}

// texts are ranges in order: the kernel has its own.
func texts(networks []net.IPNet) (all []string) {
	for _, n := range networks {
		all = append(all, n.String())
	}
	slices.Sort(all)
	return all
}

func unmapped(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
