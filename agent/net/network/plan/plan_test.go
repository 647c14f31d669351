package plan

import (
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// node has pods in 10.42.<number>.0/24.
func node(name, ip, cidr string, facts Facts) Node {
	return Node{Name: name, IP: netip.MustParseAddr(ip), PodCIDR: netip.MustParsePrefix(cidr), Facts: facts}
}

func facts(mode Mode, subnets ...string) Facts {
	f := Facts{Mode: mode}
	for _, s := range subnets {
		f.Subnets = append(f.Subnets, netip.MustParsePrefix(s))
	}
	return f
}

const someKey = "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s="

func TestChoose(t *testing.T) {
	const left, right = "192.0.2.0/25", "192.0.2.128/25"
	lame := facts(Auto, right)
	lame.NoVXLAN = "the kernel has no vxlan"
	keyed := func(f Facts) Facts {
		f.WireGuardKey = someKey
		return f
	}
	keyless := facts(Auto, left)
	keyless.NoWireGuard = "no device"
	for name, c := range map[string]struct {
		own, peer Facts
		peerIP    string
		want      Way
		why       string
	}{
		"auto, one link":                     {facts(Auto, left), facts(Auto, left), "192.0.2.2", ByRoute, left},
		"auto, two links":                    {facts(Auto, left), facts(Auto, right), "192.0.2.130", ByVXLAN, "share no link"},
		"auto, only one mask covers both":    {facts(Auto, "192.0.2.0/24"), facts(Auto, right), "192.0.2.130", ByVXLAN, "share no link"},
		"auto, addresses without a subnet":   {facts(Auto), facts(Auto), "192.0.2.2", ByVXLAN, "share no link"},
		"auto, a second link of both":        {facts(Auto, left, right), facts(Auto, right, left), "192.0.2.130", ByRoute, right},
		"auto, an older agent on the link":   {facts(Auto, left), Facts{}, "192.0.2.2", ByRoute, left},
		"auto, an older agent behind router": {facts(Auto, left), Facts{}, "192.0.2.130", None, "node peer has not told"},
		"auto, no vxlan there":               {facts(Auto, left), lame, "192.0.2.130", None, "node peer cannot use VXLAN: the kernel has no vxlan"},
		"routes, behind a router":            {facts(Routes, left), facts(Auto, right), "192.0.2.130", ByRoute, "node own has --pod-network=routes"},
		"the other has routes":               {facts(Auto, left), facts(Routes, right), "192.0.2.130", ByRoute, "node peer has --pod-network=routes"},
		"vxlan on one link":                  {facts(VXLAN, left), facts(Auto, left), "192.0.2.2", ByVXLAN, "--pod-network=vxlan"},
		"the other has vxlan":                {facts(Auto, left), facts(VXLAN, left), "192.0.2.2", ByVXLAN, "--pod-network=vxlan"},
		"routes against vxlan":               {facts(Routes, left), facts(VXLAN, left), "192.0.2.2", None, "node own has --pod-network=routes and node peer has --pod-network=vxlan"},
		"vxlan, no vxlan there":              {facts(VXLAN, left), lame, "192.0.2.130", None, "node peer cannot use VXLAN"},
		"wireguard on one link":              {keyed(facts(WireGuard, left)), keyed(facts(Auto, left)), "192.0.2.2", ByWireGuard, "node own has --pod-network=wireguard"},
		"the other has wireguard":            {keyed(facts(Auto, left)), keyed(facts(WireGuard, right)), "192.0.2.130", ByWireGuard, "node peer has --pod-network=wireguard"},
		"wireguard, an older agent there":    {keyed(facts(WireGuard, left)), Facts{}, "192.0.2.2", None, "node peer has told no key"},
		"wireguard, none there":              {keyed(facts(WireGuard, left)), keyless, "192.0.2.2", None, "node peer cannot use WireGuard: no device"},
		"wireguard against routes":           {keyed(facts(WireGuard, left)), facts(Routes), "192.0.2.2", None, "node peer has --pod-network=routes"},
		"wireguard against vxlan":            {facts(VXLAN, left), keyed(facts(WireGuard, left)), "192.0.2.2", None, "node own has --pod-network=vxlan"},
		"keys alone encrypt nothing":         {keyed(facts(Auto, left)), keyed(facts(Auto, left)), "192.0.2.2", ByRoute, left},
		"one machine":                        {facts(Auto, left), facts(Auto, left), "192.0.2.1", Same, "192.0.2.1"},
	} {
		t.Run(name, func(t *testing.T) {
			own, peer := node("own", "192.0.2.1", "10.42.0.0/24", c.own), node("peer", c.peerIP, "10.42.1.0/24", c.peer)
			got, back := Choose(own, peer), Choose(peer, own)
			if got.Way != c.want || !strings.Contains(got.Why, c.why) {
				t.Errorf("got %+v, want %s because of %q", got, c.want, c.why)
			}
			if back.Way != got.Way && c.own.Mode != "" && c.peer.Mode != "" {
				t.Errorf("%s there and %s back", got.Way, back.Way)
			}
		})
	}
	bare := node("peer", "192.0.2.2", "10.42.1.0/24", facts(Auto, left))
	own := node("own", "192.0.2.1", "10.42.0.0/24", facts(Auto, left))
	for want, peer := range map[string]Node{
		"no pod CIDR":     {Name: "peer", IP: bare.IP, Facts: bare.Facts},
		"no IPv4 address": {Name: "peer", IP: netip.MustParseAddr("2001:db8::1"), PodCIDR: bare.PodCIDR, Facts: bare.Facts},
	} {
		if got := Choose(own, peer); got.Way != None || !strings.Contains(got.Why, want) {
			t.Errorf("%s: %+v", want, got)
		}
	}
}

// TestChooseSecond: tunnels take both families, routes need a common link with IPv6.
func TestChooseSecond(t *testing.T) {
	const left, left6, right6 = "192.0.2.0/25", "fd98::/64", "fd97::/64"
	without := facts(Auto, left)
	keyed := facts(WireGuard, left)
	keyed.WireGuardKey = someKey
	lame := facts(Auto, left)
	lame.NoVXLAN = "no module"
	for name, c := range map[string]struct {
		own, peer       Facts
		ownIP6, peerIP6 string
		want            Way
		why             string
	}{
		"one link":                  {facts(Auto, left, left6), facts(Auto, left, left6), "fd98::1", "fd98::2", ByRoute, left6},
		"another link of IPv6":      {facts(Auto, left, left6), facts(Auto, left, right6), "fd98::1", "fd97::2", ByVXLAN, "no link with IPv6"},
		"the peer has none":         {facts(Auto, left, left6), without, "fd98::1", "", ByVXLAN, "node peer has no IPv6 address"},
		"we have none":              {without, facts(Auto, left, left6), "", "fd98::2", ByVXLAN, "node own has no IPv6 address"},
		"neither, and no VXLAN":     {lame, facts(Auto, left, left6), "", "fd98::2", None, "no module"},
		"routes, behind routers":    {facts(Routes, left), facts(Auto, left, right6), "fd98::1", "fd97::2", ByRoute, "--pod-network=routes"},
		"routes, and no address":    {facts(Routes, left), without, "fd98::1", "", None, "node peer has no IPv6 address, and node own has --pod-network=routes"},
		"encrypted, no IPv6 at all": {keyed, keyed, "", "", ByWireGuard, "--pod-network=wireguard"},
	} {
		t.Run(name, func(t *testing.T) {
			own, peer := node("own", "192.0.2.1", "10.42.0.0/24", c.own), node("peer", "192.0.2.2", "10.42.1.0/24", c.peer)
			if c.ownIP6 != "" {
				own.IP6 = netip.MustParseAddr(c.ownIP6)
			}
			if c.peerIP6 != "" {
				peer.IP6 = netip.MustParseAddr(c.peerIP6)
			}
			got, back := ChooseSecond(own, peer), ChooseSecond(peer, own)
			if got.Way != c.want || !strings.Contains(got.Why, c.why) || back.Way != got.Way {
				t.Errorf("got %+v and back %+v, want %s because of %q", got, back, c.want, c.why)
			}
		})
	}
}

func TestFactsSurviveTheAnnotation(t *testing.T) {
	want := facts(Auto, "192.0.2.0/24", "198.51.100.0/24")
	want.NoVXLAN, want.WireGuardKey, want.NoWireGuard = "no module", someKey, "no device"
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "own", Annotations: map[string]string{Annotation: want.String()}}}
	object.Spec.PodCIDR, object.Spec.PodCIDRs = "10.42.0.0/24", []string{"10.42.0.0/24", "fd42::/64"}
	object.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: "own"}, {Type: corev1.NodeInternalIP, Address: "192.0.2.1"}, {Type: corev1.NodeInternalIP, Address: "127.0.0.1"},
		{Type: corev1.NodeInternalIP, Address: "fd98::1"},
	}
	read := node("own", "192.0.2.1", "10.42.0.0/24", want)
	read.IP6, read.PodCIDR6 = netip.MustParseAddr("fd98::1"), netip.MustParsePrefix("fd42::/64")
	if got := NodeOf(object); !reflect.DeepEqual(got, read) {
		t.Errorf("%+v", got)
	}
	for _, text := range []string{"", "auto", `{"mode":"fast"}`, `{"mode":"auto","subnets":["x"]}`, `{"mode":"auto","wireGuardKey":"c2hvcnQ="}`, `{"mode":"auto","wireGuardKey":"?"}`} {
		if got := ParseFacts(text); !reflect.DeepEqual(got, Facts{}) {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestParseMode(t *testing.T) {
	for text, want := range map[string]Mode{"": Auto, "auto": Auto, "routes": Routes, "vxlan": VXLAN, "wireguard": WireGuard} {
		if got, err := ParseMode(text); got != want || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if _, err := ParseMode("VXLAN"); !errors.Is(err, ErrMode) {
		t.Error(err)
	}
}
