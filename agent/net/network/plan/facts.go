package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/wireguardkey"
)

// Mode is --pod-network.
type Mode string

// Modes of --pod-network.
const (
	// Auto is a route to nodes that share a link with this one, VXLAN to others.
	Auto Mode = "auto"
	// Routes is a route to every node.
	Routes Mode = "routes"
	// VXLAN is VXLAN to every node.
	VXLAN Mode = "vxlan"
	// WireGuard is an encrypted way to every node.
	WireGuard Mode = "wireguard"
)

// Annotation of a Node has the node's Facts.
const Annotation = wireguardkey.Annotation

// ErrMode says what --pod-network may be.
var ErrMode = errors.New("--pod-network must be auto, routes, vxlan or wireguard")

// ParseMode reads a flag.
func ParseMode(text string) (Mode, error) {
	switch mode := Mode(text); mode {
	case "":
		return Auto, nil
	case Auto, Routes, VXLAN, WireGuard:
		return mode, nil
	}
	return "", fmt.Errorf("%w: %q", ErrMode, text)
}

// Facts are what a node tells the others of its network. The zero value is that of a node that has not told: its agent has
// not started yet, or is of a version that only makes routes.
type Facts struct {
	Mode Mode `json:"mode,omitempty"`
	// Subnets of its links that have its own address or that of another node.
	Subnets []netip.Prefix `json:"subnets,omitempty"`
	// NoVXLAN is why it cannot send and receive VXLAN packets; empty when it can.
	NoVXLAN string `json:"noVXLAN,omitempty"`
	// WireGuardKey is its public key, in base64.
	WireGuardKey string `json:"wireGuardKey,omitempty"`
	// NoWireGuard is why it has no encrypted ways; empty when it can have them.
	NoWireGuard string `json:"noWireGuard,omitempty"`
}

// Equal compares all of them.
func (f Facts) Equal(other Facts) bool {
	return f.Mode == other.Mode && f.NoVXLAN == other.NoVXLAN && f.WireGuardKey == other.WireGuardKey && f.NoWireGuard == other.NoWireGuard &&
		slices.Equal(f.Subnets, other.Subnets)
}

// String is the annotation's value.
func (f Facts) String() string {
	text, _ := json.Marshal(f) // strings and prefixes always have a form
	return string(text)
}

// Node is a node, as the choice sees it. IP6 is its address of IPv6 and PodCIDR6 the range of its pods' second addresses, if it has
// them.
type Node struct {
	Name     string
	IP       netip.Addr
	PodCIDR  netip.Prefix
	IP6      netip.Addr
	PodCIDR6 netip.Prefix
	Facts    Facts
}

// Equal compares all that the choice depends on.
func (n Node) Equal(other Node) bool {
	return n.Name == other.Name && n.IP == other.IP && n.PodCIDR == other.PodCIDR && n.IP6 == other.IP6 && n.PodCIDR6 == other.PodCIDR6 &&
		n.Facts.Equal(other.Facts)
}

// NodeOf reads a Node. What it does not say, or not readably, stays zero.
func NodeOf(object *corev1.Node) Node {
	n := Node{Name: object.Name, Facts: ParseFacts(object.Annotations[Annotation])}
	n.PodCIDR, _ = netip.ParsePrefix(object.Spec.PodCIDR)
	if len(object.Spec.PodCIDRs) > 1 {
		n.PodCIDR6, _ = netip.ParsePrefix(object.Spec.PodCIDRs[1])
	}
	for _, a := range object.Status.Addresses {
		if a.Type != corev1.NodeInternalIP {
			continue
		}
		ip, _ := netip.ParseAddr(a.Address)
		if ip = ip.Unmap(); !n.IP.IsValid() {
			n.IP = ip
		}
		if ip.Is6() && !n.IP6.IsValid() {
			n.IP6 = ip
		}
	}
	return n
}

// ParseFacts reads an annotation.
func ParseFacts(text string) Facts {
	var f Facts
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return Facts{}
	}
	if _, err := ParseMode(string(f.Mode)); err != nil {
		return Facts{}
	}
	key, err := wireguardkey.Read(f.WireGuardKey)
	if err != nil {
		return Facts{}
	}
	f.WireGuardKey = key
	return f
}
