package network

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables"
	"github.com/vishvananda/netlink"

	"github.com/setpoint-io/setpoint/agent/net/network/guard"
	"github.com/setpoint-io/setpoint/agent/net/network/nodeway"
	"github.com/setpoint-io/setpoint/agent/net/network/ownaddress"
	"github.com/setpoint-io/setpoint/agent/net/network/plan"
)

// TestUninstallLeavesNothing of all that the agents of a network namespace make in it, and finds nothing the next time.
func TestUninstallLeavesNothing(t *testing.T) {
	needRoot(t)
	if _, err := Uninstall("sptest0"); err != nil { // the Services of tests before
		t.Fatal(err)
	}
	rules := forwardRules(t)
	before := everything(t)
	n := newNetwork(t)
	pod := startPod(t, n, "one", hostPort("", 8080))
	translation := NewTranslation(TranslationConfig{})
	translate(t, translation, tcp("10.199.7.250:443", "10.199.7.2:80"))
	near, far := peer("10.199.8.0/24", "10.199.7.8"), peer("10.199.9.0/24", "10.199.7.9")
	near.Facts.Mode, far.Facts.Mode = plan.Routes, plan.VXLAN
	routes := newRoutes(t, RoutesConfig{IP: netip.MustParseAddr("10.198.0.1"), Bridge: n.config.Bridge})
	if err := routes.SetPeers(plan.Node{PodCIDR: netip.MustParsePrefix("10.199.7.0/24")}, []plan.Node{near, far}); err != nil {
		t.Fatal(err)
	}
	if err := ownaddress.New(53, 9053).Hold(netip.MustParseAddr("10.197.0.10")); err != nil {
		t.Fatal(err)
	}
	bridge := n.config.Bridge
	if names, err := Connected(bridge); err != nil || !slices.Equal(names, []string{pod.endpoint.HostInterface}) {
		t.Errorf("connected: %v %v", names, err)
	}
	killed := pod.endpoint
	killed.HostPorts, killed.Address = nil, netip.Addr{} // the pod ended while no agent ran: its port stays open
	if err := n.Detach(killed); err != nil {
		t.Fatal(err)
	}
	if !Installed(bridge) {
		t.Error("not installed?")
	}
	removed, err := Uninstall(bridge)
	want := []string{"nftables table setpoint-" + bridge, "nftables table " + n.portsTable(), "nftables table " + translationTable,
		"nftables table " + tunnelTable(bridge), "nftables table " + nodeway.TableName(bridge), "nftables table " + ownaddress.TableName, "nftables table " + guard.TableName(bridge), "nftables table " + guard.TableName(bridge), "2 rules in iptables' FORWARD chain",
		"route to 10.199.8.0/24 via 10.199.7.8",
		"route to 10.199.9.0/24 via 10.199.9.0", "1 rules of routing", "1 routes of pods to nodes", "device " + VXLANDevice, "address 10.197.0.10", "bridge " + bridge}
	if diff := cmp.Diff(want, removed); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if diff := cmp.Diff(before, everything(t)); diff != "" || rules() != 0 {
		t.Errorf("left: %s, %d rules", diff, rules())
	}
	if removed, err := Uninstall(bridge); len(removed) != 0 || err != nil {
		t.Errorf("again: %v %v", removed, err)
	}
	if Installed(bridge) {
		t.Error("still installed?")
	}
	if names, err := Connected(bridge); len(names) != 0 || err != nil {
		t.Errorf("without a bridge: %v %v", names, err)
	}
}

// everything are the names of all interfaces and tables.
func everything(t *testing.T) (names []string) {
	t.Helper()
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		names = append(names, l.Attrs().Name)
	}
	tables, err := (&nftables.Conn{}).ListTables()
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		names = append(names, table.Name)
	}
	return names
}
