package network

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/networktest"
	"github.com/setpoint-io/setpoint/agent/net/network/plan"
	"github.com/setpoint-io/setpoint/agent/net/network/vxlanends"
)

var ownOfTwo = plan.Node{
	Name: "own", PodCIDR: ownPods, PodCIDR6: netip.MustParsePrefix("fd99:0:0:7::/64"), IP6: netip.MustParseAddr("fd98::1"),
}

// addOwnLink6 is a link with addresses of both families.
func addOwnLink6(t *testing.T) {
	t.Helper()
	needIPv6(t)
	link := addOwnLink(t)
	address := &netlink.Addr{IPNet: networktest.IPNet(netip.MustParsePrefix("fd98::1/64")), Flags: unix.IFA_F_NODAD}
	if err := netlink.AddrAdd(link, address); err != nil {
		t.Fatal(err)
	}
}

// peerOfTwo is reached at ip6 too, if it has that.
func peerOfTwo(cidr, cidr6, ip, ip6, subnet string) plan.Node {
	n := toldPeer(cidr, ip, subnet)
	n.PodCIDR6 = netip.MustParsePrefix(cidr6)
	if ip6 != "" {
		n.IP6 = netip.MustParseAddr(ip6)
		n.Facts.Subnets = append(n.Facts.Subnets, netip.PrefixFrom(n.IP6, 64).Masked())
	}
	return n
}

// TestSecondWays: by a route where both nodes have IPv6 on the link, otherwise in the packets that the first addresses have too.
func TestSecondWays(t *testing.T) {
	needRoot(t)
	addOwnLink6(t)
	routes := newRoutes(t, RoutesConfig{Node: "own", IP: netip.MustParseAddr("10.198.0.1"), Bridge: "sptest0"})
	near := peerOfTwo("10.199.8.0/24", "fd99:0:0:8::/64", "10.198.0.8", "fd98::8", "10.198.0.0/24")
	far := peerOfTwo("10.199.9.0/24", "fd99:0:0:9::/64", "10.198.1.9", "fd97::9", "10.198.1.0/24")
	first := peerOfTwo("10.199.10.0/24", "fd99:0:0:a::/64", "10.198.0.10", "", "10.198.0.0/24")
	single := toldPeer("10.199.11.0/24", "10.198.0.11", "10.198.0.0/24")
	for range 2 { // the second time changes nothing
		if err := routes.SetPeers(ownOfTwo, []plan.Node{near, far, first, single}); err != nil || len(routes.Problems()) != 0 {
			t.Fatal(err, routes.Problems())
		}
	}
	want := map[string]string{
		"10.199.8.0/24": "10.198.0.8", "10.199.9.0/24": "10.199.9.0", "10.199.10.0/24": "10.198.0.10", "10.199.11.0/24": "10.198.0.11",
		"fd99:0:0:8::/64": "fd98::8", "fd99:0:0:9::/64": "fd99:0:0:9::", "fd99:0:0:a::/64": "fd99:0:0:a::",
	}
	if diff := cmp.Diff(want, gateways(t)); diff != "" {
		t.Error(diff)
	}
	ends, err := vxlanends.Present(linkNamed(t, VXLANDevice).Attrs().Index)
	if err != nil {
		t.Fatal(err)
	}
	for end, mac := range map[string]string{"10.199.9.0": "10.199.9.0", "fd99:0:0:9::": "10.199.9.0", "fd99:0:0:a::": "10.199.10.0"} {
		key := vxlanends.Key{Family: unix.AF_INET, IP: netip.MustParseAddr(end), MAC: macOf(netip.MustParseAddr(mac)).String()}
		if key.IP.Is6() {
			key.Family = unix.AF_INET6
		}
		if !ends[key] {
			t.Errorf("no entry %+v in %v", key, ends)
		}
	}
	if err := routes.SetPeers(ownOfTwo, []plan.Node{near}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"10.199.8.0/24": "10.198.0.8", "fd99:0:0:8::/64": "fd98::8"}, gateways(t)); diff != "" {
		t.Error(diff)
	}
	near.Facts.Mode, near.IP6 = plan.Routes, netip.Addr{} // routes only, and there can be none
	if err := routes.SetPeers(ownOfTwo, []plan.Node{near}); err != nil || len(routes.Problems()) != 1 {
		t.Errorf("%v, %q", err, routes.Problems())
	}
	if err := routes.SetPeers(ownOfTwo, nil); err != nil || len(gateways(t)) != 0 {
		t.Errorf("%v, left: %v", err, gateways(t))
	}
}

// TestSecondWaysEncrypted: both ranges of a peer go by its device, or nowhere.
func TestSecondWaysEncrypted(t *testing.T) {
	needRoot(t)
	addOwnLink6(t)
	routes := newRoutes(t, RoutesConfig{Node: "own", IP: netip.MustParseAddr("10.198.0.1"), Bridge: "sptest0", Mode: plan.WireGuard})
	near := peerOfTwo("10.199.8.0/24", "fd99:0:0:8::/64", "10.198.0.8", "fd98::8", "10.198.0.0/24")
	keyless := peerOfTwo("10.199.9.0/24", "fd99:0:0:9::/64", "10.198.0.9", "fd98::9", "10.198.0.0/24")
	near.Facts.WireGuardKey = newPublicKey(t)
	for range 2 { // the second time changes nothing
		if err := routes.SetPeers(ownOfTwo, []plan.Node{near, keyless}); err != nil || len(routes.Problems()) != 1 {
			t.Fatal(err, routes.Problems())
		}
		device := linkNamed(t, WireGuardDevice).Attrs().Index
		expectLinks(t, map[string]int{"10.199.8.0/24": device, "fd99:0:0:8::/64": device, "10.199.9.0/24": 0, "fd99:0:0:9::/64": 0})
	}
	config, err := routes.encryptedPeers(map[netip.Prefix]way{near.PodCIDR: {near, plan.ByWireGuard}, near.PodCIDR6: {near, plan.ByWireGuard}})
	if err != nil || len(config.Peers) != 1 || len(config.Peers[0].Ranges) != 4 { // those of pods, and the node's addresses
		t.Errorf("peers %+v, %v", config.Peers, err)
	}
	if err := routes.SetPeers(ownOfTwo, nil); err != nil {
		t.Error(err)
	}
}
