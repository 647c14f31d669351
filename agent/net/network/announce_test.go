package network

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/announce"
	"github.com/setpoint-io/setpoint/agent/net/network/networktest"
)

const (
	nodeIP6   = "2001:db8:2::1"
	outsider6 = "2001:db8:2::2"
)

// startAnnouncer announces on the link of the outsider until the test ends.
func startAnnouncer(t *testing.T, nodeIP6 netip.Addr) *announce.Announcer {
	t.Helper()
	announcer := announce.New(netip.MustParseAddr(nodeIP), nodeIP6, slog.New(slog.NewTextHandler(t.Output(), nil)))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		announcer.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return announcer
}

// TestAnAnnouncedAddressIsReached: a machine of the same link asks who has it.
func TestAnAnnouncedAddressIsReached(t *testing.T) {
	n := newNetwork(t)
	startPod(t, n, "one")
	out := startOutsider(t)
	const vip = "192.0.2.77:80"
	translation := newTranslation(t)
	translate(t, translation, external(tcp(vip, "10.199.7.2:80")))
	startAnnouncer(t, netip.Addr{}).Set([]netip.Addr{netip.MustParseAddrPort(vip).Addr()})
	if got := out.say(vip); got != gatewayOfTest {
		t.Errorf("announced: %s", got)
	}
}

// TestAnnouncedAddressesOfIPv6AreReached: where nobody knows who has it, and where another machine had it.
func TestAnnouncedAddressesOfIPv6AreReached(t *testing.T) {
	n := newDualNetwork(t)
	startPod(t, n, "one")
	out := startOutsider(t)
	inside, err := netns.GetFromPid(out.command.Process.Pid)
	check(t, err)
	defer inside.Close()
	there, err := netlink.NewHandleAt(inside, unix.NETLINK_ROUTE)
	check(t, err)
	defer there.Close()
	addSecond(t, &netlink.Handle{}, "spout0", "fe80::1") // from which the machine asks for its neighbours: the kernel's own comes late
	own, peer := addSecond(t, &netlink.Handle{}, "spout0", nodeIP6), addSecond(t, there, PodInterface, outsider6)
	const vip, moved = "2001:db8:2::77", "2001:db8:2::78"
	translation := NewTranslation(TranslationConfig{Bridge: "sptest0"})
	t.Cleanup(func() { translate(t, translation) })
	translation.SetRanges(dualRanges())
	translate(t, translation, external(tcp("["+vip+"]:80", "[fd99:0:0:7::2]:80")), external(tcp("["+moved+"]:80", "[fd99:0:0:7::2]:80")))

	announcer := startAnnouncer(t, netip.MustParseAddr(nodeIP6))
	announcer.Set([]netip.Addr{netip.MustParseAddr(vip)})
	if got := out.say("[" + vip + "]:80"); got != secondGatewayOfTest {
		t.Errorf("announced: %s", got)
	}
	former := &netlink.Neigh{LinkIndex: peer.Attrs().Index, Family: unix.AF_INET6, State: netlink.NUD_REACHABLE, IP: net.ParseIP(moved),
		HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 0xbd}}
	check(t, there.NeighSet(former))
	if got := out.say("[" + moved + "]:80"); got == secondGatewayOfTest {
		t.Errorf("not announced: %s", got)
	}
	check(t, there.NeighSet(former)) // as if it had answered
	learned := learns(t, inside, moved, own.Attrs().HardwareAddr)
	announcer.Set([]netip.Addr{netip.MustParseAddr(vip), netip.MustParseAddr(moved)})
	select {
	case <-learned:
	case <-time.After(advertiseTimeMax):
		t.Fatal("nobody told that the address has moved")
	}
	if got := out.say("[" + moved + "]:80"); got != secondGatewayOfTest {
		t.Errorf("moved: %s", got)
	}
}

// addSecond gives a link an address of IPv6 that can be used at once.
func addSecond(t *testing.T, h *netlink.Handle, name, ip string) netlink.Link {
	t.Helper()
	link, err := h.LinkByName(name)
	check(t, err)
	prefix := netip.PrefixFrom(netip.MustParseAddr(ip), 64)
	network := networktest.IPNet(prefix)
	network.IP = net.ParseIP(ip)
	check(t, h.AddrAdd(link, &netlink.Addr{IPNet: network, Flags: unix.IFA_F_NODAD}))
	return link
}

// learns is closed when a machine begins to send what is for the address to hardware.
func learns(t *testing.T, at netns.NsHandle, ip string, hardware net.HardwareAddr) <-chan struct{} {
	t.Helper()
	updates, done, learned := make(chan netlink.NeighUpdate), make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(done) })
	check(t, netlink.NeighSubscribeAt(at, updates, done))
	go func() {
		known := false
		for update := range updates {
			if !known && update.IP.String() == ip && update.HardwareAddr.String() == hardware.String() {
				known = true
				close(learned)
			}
		}
	}()
	return learned
}
