package network

import (
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/networktest"
)

const secondGatewayOfTest = "fd99:0:0:7::1"

// newDualNetwork is newNetwork with addresses of both families.
func newDualNetwork(t *testing.T) *Network {
	t.Helper()
	needRoot(t)
	needIPv6(t)
	n := New(Config{Bridge: "sptest0", StateDir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Ranges: dualRanges()})
	if err := n.SetPodCIDR(netip.MustParsePrefix("10.199.7.0/24"), netip.MustParsePrefix("fd99:0:0:7::/64")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Remove(); err != nil {
			t.Errorf("remove: %v", err)
		}
	})
	return n
}

func dualRanges() Ranges {
	return Ranges{
		Pods: netip.MustParsePrefix("10.199.0.0/16"), Services: netip.MustParsePrefix("10.197.0.0/16"),
		Pods6: netip.MustParsePrefix("fd99::/48"), Services6: netip.MustParsePrefix("fd97::/112"),
	}
}

func TestPodsHaveTwoAddresses(t *testing.T) {
	n := newDualNetwork(t)
	one, two := startPod(t, n, "one"), startPod(t, n, "two")
	if got := two.endpoint; got.Address.String() != "10.199.7.3" || got.Second.String() != "fd99:0:0:7::3" {
		t.Fatalf("%v", got)
	}
	for what, answer := range map[string]struct{ got, want string }{
		"IPv4":            {one.say("10.199.7.3:80"), "10.199.7.2"},
		"pod to pod":      {one.say("[fd99:0:0:7::3]:80"), "fd99:0:0:7::2"},
		"host to pod":     {ask("[fd99:0:0:7::2]:80"), secondGatewayOfTest},
		"to nobody":       {one.say("[fd99:0:0:7::3]:81"), "dial tcp [fd99:0:0:7::3]:81: connect: connection refused"},
		"pod to loopback": {one.say("[::1]:80"), "::1"},
	} {
		if answer.got != answer.want {
			t.Errorf("%s: got %q, want %q", what, answer.got, answer.want)
		}
	}
	again := New(n.config) // a restarted agent: the next pod gets the next number of both
	again.Adopt(one.endpoint)
	again.Adopt(two.endpoint)
	if err := again.SetPodCIDR(n.pool().prefix, n.pool().second); err != nil {
		t.Fatal(err)
	}
	if got := startPod(t, again, "three").say("[fd99:0:0:7::2]:80"); got != "fd99:0:0:7::4" {
		t.Errorf("after a restart: %s", got)
	}
}

// TestPodsCannotClaimAnothersSecondAddress: neither what it sends from there arrives, nor does it get what is sent there.
func TestPodsCannotClaimAnothersSecondAddress(t *testing.T) {
	n := newDualNetwork(t)
	rogue, victim, other := startPod(t, n, "rogue"), startPod(t, n, "victim"), startPod(t, n, "other")
	own, claimed := rogue.endpoint.Second.String(), victim.endpoint.Second.String()
	if got := rogue.say("claim " + claimed); got != "" {
		t.Fatal(got)
	}
	to := "[" + other.endpoint.Second.String() + "]:80"
	if got := rogue.say("as " + own + " " + to); got != own {
		t.Errorf("from its own address: %s", got)
	}
	if got := rogue.say("as " + claimed + " " + to); !strings.Contains(got, "timeout") {
		t.Errorf("from the claimed address: %s", got)
	}
	if got := other.say("[" + claimed + "]:80"); got != other.endpoint.Second.String() {
		t.Errorf("to the victim: %s", got)
	}
	bridge, err := netlink.LinkByName("sptest0")
	if err != nil {
		t.Fatal(err)
	}
	known, err := netlink.NeighList(bridge.Attrs().Index, unix.AF_INET6)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(known, func(e netlink.Neigh) bool {
		return e.IP.String() == claimed && e.HardwareAddr.String() == macOf(victim.endpoint.Address).String()
	}) {
		t.Errorf("the bridge knows %v", known)
	}
}

// claim takes an address and tells everybody on the link.
func claim(address string) error {
	link, err := netlink.LinkByName(PodInterface)
	if err != nil {
		return err
	}
	prefix := netip.PrefixFrom(netip.MustParseAddr(address), 128)
	return netlink.AddrAdd(link, &netlink.Addr{IPNet: networktest.IPNet(prefix), Flags: unix.IFA_F_NODAD})
}

func TestSecondAddressesOfServices(t *testing.T) {
	n := newDualNetwork(t)
	one, two := startPod(t, n, "one"), startPod(t, n, "two")
	const address, empty, first = "[fd97::5]:443", "[fd97::6]:443", "10.197.0.5:443"
	translation := NewTranslation(TranslationConfig{Bridge: "sptest0"})
	t.Cleanup(func() { translate(t, translation) })
	translate(t, translation)
	translation.SetRanges(dualRanges())
	if damaged, err := translation.Damaged(); err != nil || !damaged {
		t.Errorf("other ranges: %v, %v", damaged, err)
	}
	port := service(unix.IPPROTO_TCP, "[::]:30080", []string{"[fd99:0:0:7::3]:80"})
	port.External = true
	stays := tcp("[fd97::7]:443", "[fd99:0:0:7::3]:80", "[fd99:0:0:7::2]:80")
	stays.Affinity = time.Minute
	listed := tcp("[fd97::8]:443", "[fd99:0:0:7::3]:80")
	listed.Sources = []netip.Prefix{netip.MustParsePrefix("fd99:0:0:7::3/128"), netip.MustParsePrefix("fd12::/16")}
	translate(t, translation, tcp(address, "[fd99:0:0:7::3]:80"), tcp(empty), tcp(first, "10.199.7.3:80"), port, stays, listed)
	for what, answer := range map[string]struct{ got, want string }{
		"IPv4":                  {one.say(first), "10.199.7.2"},
		"from another pod":      {one.say(address), "fd99:0:0:7::2"},
		"from itself":           {two.say(address), secondGatewayOfTest},
		"from the machine":      {ask(address), secondGatewayOfTest},
		"without endpoints":     {one.say(empty), "dial tcp " + empty + ": connect: connection refused"},
		"machine, without":      {ask(empty), "dial tcp " + empty + ": connect: connection refused"},
		"nobody's":              {one.say("[fd97::99]:443"), "dial tcp [fd97::99]:443: connect: connection refused"},
		"a node port":           {one.say("[" + secondGatewayOfTest + "]:30080"), secondGatewayOfTest},
		"a node port, loopback": {ask("[::1]:30080"), "dial tcp [::1]:30080: connect: connection refused"},
		"a listed source":       {two.say("[fd97::8]:443"), secondGatewayOfTest},
		"another source":        {one.say("[fd97::8]:443"), "dial tcp [fd97::8]:443: i/o timeout"},
	} {
		if answer.got != answer.want {
			t.Errorf("%s: got %q, want %q", what, answer.got, answer.want)
		}
	}
	if first := one.say("[fd97::7]:443"); slices.ContainsFunc(make([]int, 16), func(int) bool { return one.say("[fd97::7]:443") != first }) {
		t.Error("the client does not stay with its endpoint")
	}
	change(t, translation, []Service{tcp(empty, "[fd99:0:0:7::3]:80")}, tcp(address).ServiceAddress)
	if got := one.say(empty) + " " + one.say(address); got != "fd99:0:0:7::2 dial tcp "+address+": connect: connection refused" {
		t.Errorf("after a change: %s", got)
	}
	if damaged, err := translation.Damaged(); err != nil || damaged {
		t.Errorf("nobody touched it: %v, %v", damaged, err)
	}
}

func TestHostPortsOfTwoFamilies(t *testing.T) {
	n := newDualNetwork(t)
	one := startPod(t, n, "one", hostPort("", 8080))
	startPod(t, n, "two", hostPort(secondGatewayOfTest, 8081), hostPort("10.199.7.1", 8082))
	for address, want := range map[string]string{
		"10.199.7.1:8080": "10.199.7.2", "[" + secondGatewayOfTest + "]:8080": "fd99:0:0:7::2", "[" + secondGatewayOfTest + "]:8081": "fd99:0:0:7::2",
		"10.199.7.1:8081": "dial tcp 10.199.7.1:8081: connect: connection refused", "10.199.7.1:8082": "10.199.7.2",
		"[" + secondGatewayOfTest + "]:8082": "dial tcp [" + secondGatewayOfTest + "]:8082: connect: connection refused",
	} {
		got := one.say(address)
		if strings.HasSuffix(address, ":8080") && (got == gatewayOfTest || got == secondGatewayOfTest) {
			got = want // it reached itself: its source is replaced
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
	for _, refused := range []HostPort{hostPort("::", 8080), hostPort("", 8081), hostPort(secondGatewayOfTest, 8081)} {
		p := launchPod(t)
		if endpoint, err := n.Attach(Pod{ID: "three", PID: p.command.Process.Pid, HostPorts: []HostPort{refused}}); err == nil {
			t.Errorf("%v was given to two pods", refused)
			_ = n.Detach(endpoint)
		}
		p.in.Close()
		_ = p.command.Wait()
	}
}
