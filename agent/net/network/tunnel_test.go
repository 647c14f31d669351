package network

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/plan"
	"github.com/setpoint-io/setpoint/agent/net/network/vxlanends"
)

const (
	ownLinkName    = "sptestlink"
	ownLinkMTU     = 1400
	ownLinkAddress = "10.198.0.1/24"
)

// TestTunnel: nodes on the link have routes, those behind a router are reached by VXLAN, and all of it follows the nodes.
func TestTunnel(t *testing.T) {
	needRoot(t)
	link := addOwnLink(t)
	routes := newRoutes(t, RoutesConfig{Node: "own", IP: netip.MustParseAddr("10.198.0.1"), Bridge: "sptest0"})
	t.Cleanup(func() {
		if err := routes.SetPeers(plan.Node{PodCIDR: ownPods}, nil); err != nil {
			t.Error(err)
		}
		if _, err := netlink.LinkByName(VXLANDevice); err == nil {
			t.Error("the device is there without a node that is reached by it")
		}
		if slices.Contains(everything(t), tunnelTable("sptest0")) {
			t.Error("the table is there without a node that is reached by VXLAN")
		}
	})
	if got := routes.Facts(); got.NoVXLAN != "" || len(got.Subnets) != 1 || got.Subnets[0].String() != "10.198.0.0/24" {
		t.Fatalf("facts: %+v", got)
	}
	set := func(peers ...plan.Node) {
		t.Helper()
		for range 2 { // the second time changes nothing
			if err := routes.SetPeers(plan.Node{PodCIDR: ownPods}, peers); err != nil || len(routes.Problems()) != 0 {
				t.Fatal(err, routes.Problems())
			}
		}
	}
	near, far := toldPeer("10.199.8.0/24", "10.198.0.8", "10.198.0.0/24"), toldPeer("10.199.9.0/24", "10.198.1.9", "10.198.1.0/24")
	set(near, far)
	expectTunnel(t, map[string]string{"10.199.8.0/24": "10.198.0.8", "10.199.9.0/24": "10.199.9.0"},
		ownLinkMTU-plan.VXLANOverheadBytes, "10.198.1.9", "10.199.9.0")

	far.IP = netip.MustParseAddr("10.198.1.19") // its address changed
	set(near, far)
	expectTunnel(t, map[string]string{"10.199.8.0/24": "10.198.0.8", "10.199.9.0/24": "10.199.9.0"},
		ownLinkMTU-plan.VXLANOverheadBytes, "10.198.1.19", "10.199.9.0")

	if err := netlink.LinkSetMTU(link, ownLinkMTU+100); err != nil {
		t.Fatal(err)
	}
	set(far) // the near one is gone
	expectTunnel(t, map[string]string{"10.199.9.0/24": "10.199.9.0"}, ownLinkMTU+100-plan.VXLANOverheadBytes, "10.198.1.19", "10.199.9.0")

	tunnel, err := netlink.LinkByName(VXLANDevice)
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkDel(tunnel); err != nil { // somebody removed it
		t.Fatal(err)
	}
	set(far)
	expectTunnel(t, map[string]string{"10.199.9.0/24": "10.199.9.0"}, ownLinkMTU+100-plan.VXLANOverheadBytes, "10.198.1.19", "10.199.9.0")

	far.Facts.Mode = plan.Routes // what one node refuses, the other does not try
	if err := routes.SetPeers(plan.Node{PodCIDR: ownPods}, []plan.Node{far}); err == nil {
		t.Error("a node behind a router got a route")
	}
	far.Facts = plan.Facts{}
	if err := routes.SetPeers(plan.Node{PodCIDR: ownPods}, []plan.Node{far}); err != nil || len(routes.Problems()) != 1 || !strings.Contains(routes.Problems()[0], "has not told") {
		t.Errorf("an older agent behind a router: %v, %q", err, routes.Problems())
	}
}

var ownPods = netip.MustParsePrefix("10.199.7.0/24")

func toldPeer(cidr, ip, subnet string) plan.Node {
	n := peer(cidr, ip)
	n.Facts = plan.Facts{Mode: plan.Auto, Subnets: []netip.Prefix{netip.MustParsePrefix(subnet)}}
	return n
}

// addOwnLink gives this machine a link to others, with a router behind which there are more.
func addOwnLink(t *testing.T) netlink.Link {
	t.Helper()
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.MTU = ownLinkName, ownLinkMTU
	link := &netlink.Bridge{LinkAttrs: attributes}
	if err := netlink.LinkAdd(link); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := netlink.LinkDel(link); err != nil {
			t.Error(err)
		}
	})
	address, err := netlink.ParseAddr(ownLinkAddress)
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.AddrAdd(link, address); err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		t.Fatal(err)
	}
	behind := plainRoute(netip.MustParsePrefix("10.198.1.0/24"), netip.MustParseAddr("10.198.0.254"))
	behind.Protocol = unix.RTPROT_STATIC
	if err := netlink.RouteAdd(behind); err != nil {
		t.Fatal(err)
	}
	return link
}

// expectTunnel looks for all routes, and for one end behind the address of its node.
func expectTunnel(t *testing.T, want map[string]string, mtu int, node, end string) {
	t.Helper()
	if diff := cmp.Diff(want, gateways(t)); diff != "" {
		t.Error(diff)
	}
	present, err := installed()
	if err != nil {
		t.Fatal(err)
	}
	for prefix, route := range present {
		if tunnelled := route.Gw.String() == prefix.Addr().String(); tunnelled && route.MTU != mtu || !tunnelled && route.MTU != 0 {
			t.Errorf("route to %s: MTU %d", prefix, route.MTU)
		}
	}
	link, err := netlink.LinkByName(VXLANDevice)
	if err != nil {
		t.Fatal(err)
	}
	if link.Attrs().MTU != mtu || link.(*netlink.Vxlan).Learning || link.(*netlink.Vxlan).VxlanId != plan.VXLANID {
		t.Errorf("device: %+v", link)
	}
	ends, err := vxlanends.Present(link.Attrs().Index)
	if err != nil {
		t.Fatal(err)
	}
	mac := macOf(netip.MustParseAddr(end)).String()
	wanted := map[vxlanends.Key]bool{
		{Family: unix.AF_INET, IP: netip.MustParseAddr(end), MAC: mac}:    true,
		{Family: unix.AF_BRIDGE, IP: netip.MustParseAddr(node), MAC: mac}: true,
	}
	for key := range wanted {
		if !ends[key] {
			t.Errorf("no entry %+v", key)
		}
	}
	if len(ends) != len(wanted) {
		t.Errorf("entries: %+v", ends)
	}
	conn, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	set := &nftables.Set{Table: &nftables.Table{Family: nftables.TableFamilyIPv4, Name: tunnelTable("sptest0")}, Name: nodesSet}
	elements, err := conn.GetSetElements(set)
	if err != nil || len(elements) != 1 || netip.AddrFrom4([4]byte(elements[0].Key)).String() != node {
		t.Errorf("nodes from which VXLAN packets are taken: %v, %v", elements, err)
	}
}
