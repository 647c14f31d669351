package network

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/link"
	"github.com/setpoint-io/setpoint/agent/net/network/nft"
)

// TestABridgeOfAnEarlierLife: a node was made anew while its agent was away, and has other ranges. The bridge becomes what one that is
// made now is, whatever the earlier one had, and pods reach each other and the machine.
func TestABridgeOfAnEarlierLife(t *testing.T) {
	needIPv6(t)
	first := newNetwork(t)
	life := func(pods, second, services, services6 string, mtu int) *Network {
		t.Helper()
		config := first.config
		config.MTU = mtu
		config.Ranges = Ranges{Pods: netip.MustParsePrefix("10.199.0.0/16"), Services: netip.MustParsePrefix(services)}
		var range6 netip.Prefix
		if second != "" {
			range6 = netip.MustParsePrefix(second)
			config.Ranges.Pods6, config.Ranges.Services6 = netip.MustParsePrefix("fd99::/48"), netip.MustParsePrefix(services6)
		}
		n := New(config)
		if err := n.SetPodCIDR(netip.MustParsePrefix(pods), range6); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, l := range []struct {
		name, pods, second, services, services6 string
		mtu                                     int
		want                                    []string
	}{
		{"two families", "10.199.8.0/24", "fd99:0:0:8::/64", "10.197.0.0/16", "fd97::/112", 0, []string{"10.199.8.1/24", "fd99:0:0:8::1/64"}},
		{"another range of each, and a smaller MTU", "10.199.9.0/24", "fd99:0:0:9::/64", "10.196.0.0/16", "fd96::/112", 1400,
			[]string{"10.199.9.1/24", "fd99:0:0:9::1/64"}},
		{"a larger range with the same gateway", "10.199.8.0/23", "fd99:0:0:8::/64", "10.197.0.0/16", "fd97::/112", 0,
			[]string{"10.199.8.1/23", "fd99:0:0:8::1/64"}},
		{"one family", "10.199.10.0/24", "", "10.197.0.0/16", "", 0, []string{"10.199.10.1/24"}},
	} {
		n := life(l.pods, l.second, l.services, l.services6, l.mtu)
		state := bridgeState(t, n)
		want := state
		want.hardware, want.addresses = macOf(n.pool().gateway()).String(), l.want
		want.neighbours = 0
		want.routes = []string{netip.MustParsePrefix(l.services).String()}
		if l.second != "" {
			want.routes = append(want.routes, netip.MustParsePrefix(l.services6).String())
		}
		if want.mtu = l.mtu; l.mtu == 0 {
			want.mtu = defaultMTU
		}
		if diff := cmp.Diff(want, state, cmp.AllowUnexported(state)); diff != "" {
			t.Errorf("%s: %s", l.name, diff)
		}
		if tables := tablesOf(t, inet6); slices.Contains(tables, n.table()) != (l.second != "") {
			t.Errorf("%s: tables of IPv6: %s", l.name, tables)
		}
		one, two := startPod(t, n, "one"+l.pods, hostPort("", 8080)), startPod(t, n, "two"+l.pods)
		for _, address := range two.endpoint.Addresses() {
			to := netip.AddrPortFrom(address, 80).String()
			if got := one.say(to); got != one.endpoint.in(familyOf(address)).String() {
				t.Errorf("%s: pod to %s: %s", l.name, to, got)
			}
			if got := ask(to); got != n.gatewayOf(address).String() {
				t.Errorf("%s: machine to %s: %s", l.name, to, got)
			}
		}
		one.stop(n)
		two.stop(n)
	}
}

func tablesOf(t *testing.T, f family) (names []string) {
	t.Helper()
	conn, err := nft.Open()
	if err != nil {
		t.Fatal(err)
	}
	tables, err := conn.ListTablesOfFamily(f.Tables)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		names = append(names, table.Name)
	}
	return names
}

func familyOf(address netip.Addr) family {
	if address.Is6() {
		return inet6
	}
	return inet
}

func (n *Network) gatewayOf(address netip.Addr) netip.Addr {
	if pool := n.pool(); address.Is6() {
		return pool.inSecond(pool.gateway())
	}
	return n.pool().gateway()
}

// state is what a bridge has beside its pods.
type state struct {
	hardware          string
	mtu               int
	addresses, routes []string
	neighbours        int // that it knows for good
}

func bridgeState(t *testing.T, n *Network) (s state) {
	t.Helper()
	bridge, err := netlink.LinkByName(n.config.Bridge)
	if err != nil {
		t.Fatal(err)
	}
	s.hardware, s.mtu = bridge.Attrs().HardwareAddr.String(), bridge.Attrs().MTU
	addresses, err := link.Addresses(bridge, netlink.FAMILY_ALL)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if a.Scope != unix.RT_SCOPE_LINK {
			s.addresses = append(s.addresses, a.IPNet.String())
		}
	}
	routes, err := readRoutes()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routes {
		if r.LinkIndex == bridge.Attrs().Index && r.Protocol != unix.RTPROT_KERNEL {
			s.routes = append(s.routes, link.PrefixOf(r.Dst).Masked().String())
		}
	}
	neighbours, err := link.Neighbours(bridge.Attrs().Index, netlink.FAMILY_V6)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range neighbours {
		if address, _ := netip.AddrFromSlice(e.IP); e.State&netlink.NUD_PERMANENT != 0 && !address.IsMulticast() {
			s.neighbours++
		}
	}
	slices.Sort(s.addresses)
	slices.Sort(s.routes)
	return s
}

// TestPodsOfAnEarlierAgent: those that run are on the bridge again, whatever was done to their interfaces while no agent ran, and one of
// which nothing is known is off it: no policy and no guard would hold it.
func TestPodsOfAnEarlierAgent(t *testing.T) {
	needIPv6(t)
	n := newNetwork(t)
	n.config.Ranges.Pods6 = netip.MustParsePrefix("fd99::/48")
	former := New(n.config)
	prefix, second := netip.MustParsePrefix("10.199.7.0/24"), netip.MustParsePrefix("fd99:0:0:7::/64")
	if err := former.SetPodCIDR(prefix, second); err != nil {
		t.Fatal(err)
	}
	one, lost := startPod(t, former, "one"), launchPod(t)
	defer lost.in.Close()
	var err error
	if lost.endpoint, err = former.Attach(Pod{ID: "lost", PID: lost.command.Process.Pid}); err != nil {
		t.Fatal(err)
	}
	for _, before := range []struct {
		name   string
		damage func() error
	}{
		{"nothing happened", func() error { return nil }},
		{"off the bridge, and down", func() error {
			l, err := netlink.LinkByName(one.endpoint.HostInterface)
			if err != nil {
				return err
			}
			return errors.Join(netlink.LinkSetNoMaster(l), netlink.LinkSetDown(l))
		}},
		{"the bridge was deleted", func() error {
			_, err := link.Remove(n.config.Bridge)
			return err
		}},
	} {
		name := before.name
		if err := before.damage(); err != nil {
			t.Fatal(err)
		}
		again := New(n.config)
		again.Adopt(one.endpoint)
		if err := again.SetPodCIDR(prefix, second); err != nil {
			t.Fatal(err)
		}
		if _, err := netlink.LinkByName(lost.endpoint.HostInterface); err == nil {
			t.Errorf("%s: a pod of which nothing is known is on the network", name)
		}
		if state := bridgeState(t, again); state.neighbours != 1 {
			t.Errorf("%s: the bridge knows %d neighbours, want the pod that runs", name, state.neighbours)
		}
		two := startPod(t, again, "two")
		for _, address := range one.endpoint.Addresses() {
			to := netip.AddrPortFrom(address, 80).String()
			if got := two.say(to); got != two.endpoint.in(familyOf(address)).String() {
				t.Errorf("%s: another pod to %s: %s", name, to, got)
			}
			if got := ask(to); got != again.gatewayOf(address).String() {
				t.Errorf("%s: machine to %s: %s", name, to, got)
			}
		}
		two.stop(again)
	}
}
