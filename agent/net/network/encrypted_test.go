package network

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/setpoint-io/setpoint/agent/net/network/plan"
)

// TestEncrypted: nodes that tell a key are reached by the device, on the link too; packets to others find no way in the clear.
func TestEncrypted(t *testing.T) {
	needRoot(t)
	addOwnLink(t)
	routes := newRoutes(t, RoutesConfig{Node: "own", IP: netip.MustParseAddr("10.198.0.1"), Bridge: "sptest0", Mode: plan.WireGuard})
	if got := routes.Facts(); got.Mode != plan.WireGuard || got.NoWireGuard != "" || got.WireGuardKey != routes.key.PublicKey().String() {
		t.Fatalf("facts: %+v", got)
	}
	near, far := toldPeer("10.199.8.0/24", "10.198.0.8", "10.198.0.0/24"), toldPeer("10.199.9.0/24", "10.198.1.9", "10.198.1.0/24")
	near.Facts.WireGuardKey, far.Facts.WireGuardKey = newPublicKey(t), newPublicKey(t)
	for range 2 { // the second time changes nothing
		if err := routes.SetPeers(plan.Node{PodCIDR: ownPods}, []plan.Node{near, far}); err != nil || len(routes.Problems()) != 0 {
			t.Fatal(err, routes.Problems())
		}
		link := linkNamed(t, WireGuardDevice)
		if link.Attrs().MTU != ownLinkMTU-plan.WireGuardOverheadBytes {
			t.Errorf("MTU %d", link.Attrs().MTU)
		}
		expectLinks(t, map[string]int{"10.199.8.0/24": link.Attrs().Index, "10.199.9.0/24": link.Attrs().Index})
		addresses, err := netlink.AddrList(link, netlink.FAMILY_V4)
		if err != nil || len(addresses) != 1 || addresses[0].IPNet.String() != "10.199.7.0/32" {
			t.Errorf("addresses %v, %v", addresses, err)
		}
	}

	near.Facts.WireGuardKey = "" // its agent is an older one, now
	link := linkNamed(t, WireGuardDevice)
	if err := routes.SetPeers(plan.Node{PodCIDR: ownPods}, []plan.Node{near, far}); err != nil || len(routes.Problems()) != 1 ||
		!strings.Contains(routes.Problems()[0], "has told no key") {
		t.Errorf("%v, %q", err, routes.Problems())
	}
	expectLinks(t, map[string]int{"10.199.8.0/24": 0, "10.199.9.0/24": link.Attrs().Index})
	if _, err := netlink.RouteGet(netip.MustParseAddr("10.199.8.5").AsSlice()); !errors.Is(err, unix.EHOSTUNREACH) {
		t.Errorf("a packet to a node without a key finds a way: %v", err)
	}

	if err := netlink.LinkDel(link); err != nil { // somebody removed it
		t.Fatal(err)
	}
	if err := routes.SetPeers(plan.Node{PodCIDR: ownPods}, []plan.Node{far}); err != nil {
		t.Fatal(err)
	}
	expectLinks(t, map[string]int{"10.199.9.0/24": linkNamed(t, WireGuardDevice).Attrs().Index})
	if err := routes.SetPeers(plan.Node{PodCIDR: ownPods}, nil); err != nil {
		t.Error(err)
	}
	expectLinks(t, map[string]int{})
	if _, err := netlink.LinkByName(WireGuardDevice); err == nil {
		t.Error("the device is there without a node that is reached by it")
	}
}

func newPublicKey(t *testing.T) string {
	t.Helper()
	key, err := wgtypes.GeneratePrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	return key.PublicKey().String()
}

func linkNamed(t *testing.T, name string) netlink.Link {
	t.Helper()
	link, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return link
}

// expectLinks looks for routes through links; 0 is that of a route to nowhere.
func expectLinks(t *testing.T, want map[string]int) {
	t.Helper()
	present, err := installed()
	if err != nil {
		t.Fatal(err)
	}
	for prefix, link := range want {
		route, ok := present[netip.MustParsePrefix(prefix)]
		if nowhere := route.Type == unix.RTN_UNREACHABLE; !ok || nowhere != (link == 0) || link != 0 && route.LinkIndex != link {
			t.Errorf("route to %s: %+v, want link %d", prefix, route, link)
		}
	}
	if len(present) != len(want) {
		t.Errorf("%d routes, want %d: %v", len(present), len(want), present)
	}
}
