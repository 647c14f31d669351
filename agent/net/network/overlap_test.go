package network

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"github.com/setpoint-io/setpoint/agent/net/network/networktest"
	"github.com/setpoint-io/setpoint/agent/net/network/plan"
)

func TestOverlaps(t *testing.T) {
	ranges := Ranges{Pods: netip.MustParsePrefix("10.42.0.0/16"), Services: netip.MustParsePrefix("10.96.0.0/16")}
	for name, c := range map[string]struct {
		to     string
		direct bool
		want   []string
	}{
		"elsewhere":                        {"192.0.2.0/24", true, nil},
		"a link within the pods":           {"10.42.3.0/24", true, []string{"pod network 10.42.0.0/16"}},
		"a gateway within the pods":        {"10.42.3.0/24", false, []string{"pod network 10.42.0.0/16"}},
		"the same":                         {"10.42.0.0/16", false, []string{"pod network 10.42.0.0/16"}},
		"one address of the Services":      {"10.96.0.1/32", false, []string{"range of Services 10.96.0.0/16"}},
		"a gateway for more":               {"10.0.0.0/8", false, nil},
		"a link with all of them":          {"10.0.0.0/8", true, []string{"pod network 10.42.0.0/16", "range of Services 10.96.0.0/16"}},
		"a gateway for half of the ranges": {"10.0.0.0/9", false, nil},
	} {
		var got []string
		for _, text := range ranges.overlaps([]foreignRoute{{netip.MustParsePrefix(c.to), "eth0", c.direct}}) {
			before, after, _ := strings.Cut(text, " overlaps this machine's route to "+c.to+" by eth0: ")
			if got = append(got, strings.TrimPrefix(before, "the ")); after == "" {
				t.Errorf("%s: %s", name, text)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if got := (Ranges{}).overlaps([]foreignRoute{{netip.MustParsePrefix("10.0.0.0/8"), "eth0", true}}); got != nil {
		t.Errorf("of ranges that are not known: %v", got)
	}
}

// TestOverlapsOfThisMachine come and go with its routes, and no route of the cluster's own is one.
func TestOverlapsOfThisMachine(t *testing.T) {
	newNetwork(t) // its bridge has 10.199.7.0/24, and a route to 10.197.0.0/16
	link := addOwnLink(t)
	routes := newRoutes(t, RoutesConfig{Node: "own", IP: netip.MustParseAddr("10.198.0.1"), Bridge: "sptest0"})
	t.Cleanup(func() {
		if err := routes.SetPeers(plan.Node{PodCIDR: ownPods}, nil); err != nil {
			t.Error(err)
		}
	})
	near, far := toldPeer("10.199.8.0/24", "10.198.0.8", "10.198.0.0/24"), toldPeer("10.199.9.0/24", "10.198.1.9", "10.198.1.0/24")
	if err := routes.SetPeers(plan.Node{PodCIDR: ownPods}, []plan.Node{near, far}); err != nil {
		t.Fatal(err)
	}
	ranges := Ranges{Pods: netip.MustParsePrefix("10.199.0.0/16"), Services: netip.MustParsePrefix("10.197.0.0/16")}
	if routes.SetRanges(ranges); len(routes.Overlaps()) != 0 {
		t.Errorf("before: %v", routes.Overlaps())
	}
	elsewhere := networktest.IPNet(netip.MustParsePrefix("10.199.100.0/24"))
	foreign := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: elsewhere, Scope: netlink.SCOPE_LINK}
	if err := netlink.RouteAdd(foreign); err != nil {
		t.Fatal(err)
	}
	reads := 0
	routes.read = func() (routingTable, error) {
		reads++
		return readRoutes()
	}
	if routes.check(); reads != 1 {
		t.Errorf("the table was read %d times", reads)
	}
	if got := routes.Overlaps(); len(got) != 1 || !strings.Contains(got[0], "10.199.100.0/24 by "+ownLinkName) {
		t.Errorf("with a route: %v", got)
	}
	if err := netlink.RouteDel(foreign); err != nil {
		t.Fatal(err)
	}
	if routes.SetRanges(ranges); len(routes.Overlaps()) != 0 {
		t.Errorf("after: %v", routes.Overlaps())
	}
}
