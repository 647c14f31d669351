package network

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables"
	"github.com/vishvananda/netlink"

	"github.com/setpoint-io/setpoint/agent/net/network/iptables"
	"github.com/setpoint-io/setpoint/agent/net/network/link"
	"github.com/setpoint-io/setpoint/agent/net/network/plan"
)

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces")
	}
}

func needIPv6(t *testing.T) {
	t.Helper()
	if !HasIPv6() {
		t.Skip("needs a kernel with IPv6")
	}
}

func newNetwork(t *testing.T) *Network {
	t.Helper()
	needRoot(t)
	n := New(Config{Bridge: "sptest0", Ranges: Ranges{Pods: netip.MustParsePrefix("10.199.0.0/16"), Services: netip.MustParsePrefix("10.197.0.0/16")}, StateDir: t.TempDir(),
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err := n.SetPodCIDR(netip.MustParsePrefix("10.199.7.0/24"), netip.Prefix{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Remove(); err != nil {
			t.Errorf("remove: %v", err)
		}
		if links, _ := netlink.LinkList(); len(links) > 1 {
			t.Errorf("interfaces left: %v", links)
		}
	})
	return n
}

func TestPodsReachEachOtherAndTheHost(t *testing.T) {
	n := newNetwork(t)
	one, two := startPod(t, n, "one"), startPod(t, n, "two")
	if one.endpoint.Address.String() != "10.199.7.2" || two.endpoint.Address.String() != "10.199.7.3" {
		t.Fatalf("addresses %v %v", one.endpoint, two.endpoint)
	}
	if got := one.say("10.199.7.3:80"); got != "10.199.7.2" {
		t.Errorf("pod to pod: %s", got)
	}
	if got := ask("10.199.7.2:80"); got != "10.199.7.1" {
		t.Errorf("host to pod: %s", got)
	}
	if got := one.say("127.0.0.1:80"); got != "127.0.0.1" {
		t.Errorf("loopback: %s", got)
	}
}

// forwardRules makes the chain that Docker makes, and counts its rules.
func forwardRules(t *testing.T) (count func() int) {
	t.Helper()
	conn, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	drop := nftables.ChainPolicyDrop
	table := conn.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "filter"})
	chain := conn.AddChain(&nftables.Chain{Name: "FORWARD", Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter, Policy: &drop})
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.DelTable(table)
		if err := conn.Flush(); err != nil {
			t.Error(err)
		}
	})
	return func() int {
		rules, err := conn.GetRules(table, chain)
		if err != nil {
			t.Error(err)
		}
		return len(rules)
	}
}

func TestPodsReachEachOtherWhereForwardingIsRefused(t *testing.T) {
	needRoot(t)
	rules := forwardRules(t)
	n := newNetwork(t)
	startPod(t, n, "one")
	if got := startPod(t, n, "two").say("10.199.7.2:80"); got != "10.199.7.3" {
		t.Errorf("pod to pod: %s", got)
	}
	again := New(n.config) // a restarted agent
	if err := again.SetPodCIDR(netip.MustParsePrefix("10.199.7.0/24"), netip.Prefix{}); err != nil || rules() != 2 {
		t.Errorf("%d rules, %v; want one for each direction", rules(), err)
	}
	if _, err := iptables.Forward(again.config.Bridge).Remove(); err != nil || rules() != 0 {
		t.Errorf("%d rules left, %v", rules(), err)
	}
}

// TestReusedAddressIsReachableAtOnce keeps the bridge's neighbour entry of the first owner alive.
func TestReusedAddressIsReachableAtOnce(t *testing.T) {
	n := newNetwork(t)
	first := startPod(t, n, "first")
	address := first.endpoint.Address.String() + ":80"
	if got := ask(address); got != "10.199.7.1" {
		t.Fatal(got)
	}
	if err := n.Detach(first.endpoint); err != nil {
		t.Fatal(err)
	}
	if err := n.Detach(first.endpoint); err != nil {
		t.Errorf("detach again: %v", err)
	}
	pool := n.pool()
	pool.last = pool.gateway() // as if the pool had gone round
	second := startPod(t, n, "second")
	if second.endpoint.Address != first.endpoint.Address {
		t.Fatalf("address %s", second.endpoint.Address)
	}
	if got := ask(address); got != "10.199.7.1" {
		t.Errorf("the address's next owner: %s", got)
	}
}

func TestTrafficLeavingTheClusterIsMasqueraded(t *testing.T) {
	n := newNetwork(t)
	pod := startPod(t, n, "inside")
	// A machine outside the cluster that knows no route to pods, and one inside that does.
	outside := outsideMachine(t, "198.51.100.2/24", "198.51.100.1/24", "outer0")
	if got := pod.say(outside); got != "198.51.100.1" {
		t.Errorf("outside sees %s", got)
	}
}

// outsideMachine makes a namespace behind a link of its own and returns its server's address.
func outsideMachine(t *testing.T, address, ours, link string) string {
	t.Helper()
	return strangerBehind(t, address, link).endpoint.Address.String() + ":80"
}

func strangerBehind(t *testing.T, address, link string) *testPod {
	t.Helper()
	peer := New(Config{Bridge: link, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	prefix := netip.MustParsePrefix(address)
	if err := peer.SetPodCIDR(prefix, netip.Prefix{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := peer.Remove(); err != nil {
			t.Error(err)
		}
	})
	return startPod(t, peer, "outside")
}

func TestSetPodCIDR(t *testing.T) {
	n := newNetwork(t)
	if err := n.SetPodCIDR(netip.MustParsePrefix("10.199.7.0/24"), netip.Prefix{}); err != nil {
		t.Errorf("same prefix: %v", err)
	}
	if err := n.SetPodCIDR(netip.MustParsePrefix("10.199.8.0/24"), netip.Prefix{}); err == nil {
		t.Error("another prefix was taken")
	}
	for _, bad := range []string{"fd00::/64", "10.0.0.0/31"} {
		if err := New(Config{}).SetPodCIDR(netip.MustParsePrefix(bad), netip.Prefix{}); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
	if err := New(Config{}).Ready(); !errors.Is(err, ErrNoPodCIDR) {
		t.Errorf("ready without a prefix: %v", err)
	}
	if _, err := New(Config{}).Attach(Pod{PID: 1, ID: "x"}); !errors.Is(err, ErrNoPodCIDR) {
		t.Errorf("attach without a prefix: %v", err)
	}
}

func TestAddresses(t *testing.T) {
	dir := t.TempDir()
	pool := newAddresses(netip.MustParsePrefix("10.0.0.0/29"), netip.Prefix{}, dir)
	next := func() string {
		address, err := pool.allocate()
		if err != nil {
			return err.Error()
		}
		return address.String()
	}
	pool.reserve(netip.MustParseAddr("10.0.0.3"))
	var got []string
	for range 4 {
		got = append(got, next())
	}
	if diff := cmp.Diff([]string{"10.0.0.2", "10.0.0.4", "10.0.0.5", "10.0.0.6"}, got); diff != "" {
		t.Error(diff)
	}
	if got := next(); !strings.Contains(got, "no free pod address") {
		t.Errorf("full pool gave %s", got)
	}
	pool.release(netip.MustParseAddr("10.0.0.2"))
	pool.release(netip.MustParseAddr("10.0.0.5"))
	if got := next(); got != "10.0.0.2" {
		t.Errorf("after going round: %s", got)
	}
	pool = newAddresses(netip.MustParsePrefix("10.0.0.0/29"), netip.Prefix{}, dir)
	if got := next(); got != "10.0.0.3" {
		t.Errorf("after a restart: %s, want the one behind the last", got)
	}
}

func TestRoutes(t *testing.T) {
	newNetwork(t) // 10.199.7.1 is then an address of this machine, and a link exists
	routes := newRoutes(t, RoutesConfig{Mode: plan.Routes})
	own := netip.MustParsePrefix("10.199.7.0/24")
	steps := []struct {
		name  string
		peers []plan.Node
		want  map[string]string
	}{
		{"two, and ourselves twice", []plan.Node{peer("10.199.8.0/24", "10.199.7.8"), peer("10.199.9.0/24", "10.199.7.9"),
			peer("10.199.7.0/24", "10.199.7.7"), peer("10.199.10.0/24", "10.199.7.1")},
			map[string]string{"10.199.8.0/24": "10.199.7.8", "10.199.9.0/24": "10.199.7.9"}},
		{"one moved, one gone", []plan.Node{peer("10.199.8.0/24", "10.199.7.18")}, map[string]string{"10.199.8.0/24": "10.199.7.18"}},
		{"nobody", nil, map[string]string{}},
	}
	for _, step := range steps {
		for range 2 { // the second time changes nothing
			if err := routes.SetPeers(plan.Node{PodCIDR: own}, step.peers); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
		}
		if diff := cmp.Diff(step.want, gateways(t)); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
	if err := routes.SetPeers(plan.Node{PodCIDR: own}, []plan.Node{peer("10.199.8.0/24", "203.0.113.9")}); err == nil || len(routes.Problems()) != 1 {
		t.Errorf("a node that is not on a shared link got a route: %v, %q", err, routes.Problems())
	}
}

func newRoutes(t *testing.T, config RoutesConfig) *Routes {
	t.Helper()
	config.Logger, config.DataDir = slog.New(slog.NewTextHandler(t.Output(), nil)), t.TempDir()
	routes, err := NewRoutes(config)
	if err != nil {
		t.Fatal(err)
	}
	return routes
}

func peer(cidr, ip string) plan.Node {
	return plan.Node{Name: ip, PodCIDR: netip.MustParsePrefix(cidr), IP: netip.MustParseAddr(ip)}
}

// gateways of our routes.
func gateways(t *testing.T) map[string]string {
	t.Helper()
	present, err := installed()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for prefix, route := range present {
		got[prefix.String()] = route.Gw.String()
	}
	return got
}

func TestMACFollowsTheAddress(t *testing.T) {
	want, _ := net.ParseMAC("0a:58:0a:2a:01:05")
	if got := macOf(netip.MustParseAddr("10.42.1.5")); got.String() != want.String() {
		t.Errorf("%s", got)
	}
}

// TestLinksThatAreGoneNeedNoRemoval also where they go between two looks.
func TestLinksThatAreGoneNeedNoRemoval(t *testing.T) {
	needRoot(t)
	attributes := netlink.NewLinkAttrs()
	attributes.Name = "spgone0"
	check(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attributes}))
	found, err := netlink.LinkByName(attributes.Name)
	check(t, err)
	for _, want := range []bool{true, false} {
		if removed, err := link.Remove(attributes.Name); err != nil || removed != want {
			t.Errorf("%v, %v, want %v", removed, err, want)
		}
	}
	check(t, link.Delete(found))
}
