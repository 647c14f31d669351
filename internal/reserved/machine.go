package reserved

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Use is what the cluster needs a port of a machine for. Its text follows "of" or "is for".
type Use string

// Uses of ports.
const (
	API       Use = "the API"
	Agent     Use = "the node agent"
	Gossip    Use = "gossip between servers and nodes"
	VXLAN     Use = "VXLAN between nodes"
	WireGuard Use = "WireGuard between nodes"
	Ingress   Use = "Ingresses"
	// Pod and Gateway ports are of a machine that says so itself.
	Pod     Use = "a pod of that machine"
	Gateway Use = "Gateways"
	// NodePort is for any Service that gets the port on all nodes.
	NodePort Use = "node ports of Services"
)

// ofOne reports whether a port of this use says nothing of that port elsewhere: a node port of the same number is another thing.
func (u Use) ofOne() bool { return u == Pod || u == Gateway }

// Closed reports whether only machines of the cluster have to reach a port of this use. The others ask who is there, or are for
// everybody.
func (u Use) Closed() bool { return u == Gossip || u == VXLAN || u == WireGuard }

// Ports of machines whose flags name no others; those of the ways between nodes are the same everywhere.
const (
	apiPort          = 6443
	agentPort        = 10250
	serverGossipPort = 7946
	nodeGossipPort   = 7947
	vxlanPort        = 8472
	wireGuardPort    = 51820
)

// Port is one of a machine's.
type Port struct {
	Protocol corev1.Protocol
	Number   int32
}

// MarshalText is String.
func (p Port) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads that.
func (p *Port) UnmarshalText(text []byte) error {
	number, protocol, _ := strings.Cut(string(text), "/")
	n, err := strconv.ParseUint(number, 10, 16)
	p.Number, p.Protocol = int32(n), corev1.Protocol(protocol)
	return err
}

// String is as users see ports of Services: "53/UDP".
func (p Port) String() string { return fmt.Sprintf("%d/%s", p.Number, p.Protocol) }

// TCP is a port of that protocol.
func TCP(number int32) Port { return Port{corev1.ProtocolTCP, number} }

// UDP is a port of that protocol.
func UDP(number int32) Port { return Port{corev1.ProtocolUDP, number} }

// Machine is a server or a node: where it is, and the ports that it has for the cluster.
type Machine struct {
	// Name says what it is: "node n1".
	Name string
	// Addresses are as normal returns them.
	Addresses []netip.Addr
	Ports     map[Port]Use
}

func (m Machine) equal(other Machine) bool {
	return m.Name == other.Name && slices.Equal(m.Addresses, other.Addresses) && maps.Equal(m.Ports, other.Ports)
}

// use adds ports; 0 is none.
func (m *Machine) use(use Use, ports ...Port) {
	for _, p := range ports {
		if p.Number > 0 && p.Number < 1<<16 {
			m.Ports[p] = use
		}
	}
}

// at adds an address, if the text is one.
func (m *Machine) at(text string) {
	ip, err := netip.ParseAddr(text)
	if ip = normal(ip); err == nil && !ip.IsUnspecified() && !slices.Contains(m.Addresses, ip) {
		m.Addresses = append(m.Addresses, ip)
	}
}

// normal is the one form of an address: that of IPv4 is not one of IPv6, and a zone is left out.
func normal(ip netip.Addr) netip.Addr { return ip.Unmap().WithZone("") }
