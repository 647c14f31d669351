package network

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/guard"
)

const (
	forgedPort = 4040
	// forgedWait is how long a datagram is awaited that must not come.
	forgedWait = 50 * time.Millisecond
)

// TestPodsCannotForgeFrames: a container has NET_RAW unless it drops it, and sends any frame. One that does not come from the pod's
// address, or does not go through the machine, which knows the policies, reaches nobody.
func TestPodsCannotForgeFrames(t *testing.T) {
	n := newNetwork(t)
	rogue, victim, other := startPod(t, n, "rogue"), startPod(t, n, "victim"), startPod(t, n, "other")
	own, to := rogue.endpoint.Address, victim.endpoint.Address
	gateway, elsewhere := macOf(n.pool().gateway()), netip.MustParseAddr("10.199.8.2")
	forged := func() {
		t.Helper()
		for name, c := range map[string]struct {
			hardware net.HardwareAddr
			from     netip.Addr
			tags     string
			arrives  string
		}{
			"honest":                     {gateway, own, "-", "1"},
			"straight to the pod":        {macOf(to), own, "-", "0"},
			"to everybody":               {net.HardwareAddr{255, 255, 255, 255, 255, 255}, own, "-", "0"},
			"to a group":                 {net.HardwareAddr{1, 0, 0x5e, 0, 0, 1}, own, "-", "0"},
			"to the switch":              {net.HardwareAddr{1, 0x80, 0xc2, 0, 0, 2}, own, "-", "0"},
			"to bridges":                 {net.HardwareAddr{1, 0x80, 0xc2, 0, 0, 0}, own, "-", "0"},
			"from another pod's address": {gateway, other.endpoint.Address, "-", "0"},
			"straight, from another's":   {macOf(to), other.endpoint.Address, "-", "0"},
			"from elsewhere":             {gateway, elsewhere, "-", "0"},
			"elsewhere, with a tag":      {gateway, elsewhere, "81000000", "0"},
			"elsewhere, with two tags":   {gateway, elsewhere, "8100000081000000", "0"},
			"elsewhere, with two kinds":  {gateway, elsewhere, "88a8000081000000", "0"},
			"elsewhere, with three tags": {gateway, elsewhere, "810000008100000081000000", "0"},
			"elsewhere, to the switch":   {net.HardwareAddr{1, 0x80, 0xc2, 0, 0, 2}, elsewhere, "-", "0"},
		} {
			if got := rogue.say(fmt.Sprintf("forge %s %s %s %s", c.hardware, c.from, to, c.tags)); got != "" {
				t.Fatalf("%s: %s", name, got)
			}
			if got := victim.say("count"); got != c.arrives {
				t.Errorf("%s: %s datagrams arrive, want %s", name, got, c.arrives)
			}
		}
	}
	victim.say("count") // it listens from now on
	forged()

	again := New(n.config) // a restarted agent
	for _, p := range []*testPod{rogue, victim, other} {
		again.Adopt(p.endpoint)
	}
	if err := again.SetPodCIDR(n.pool().prefix, netip.Prefix{}); err != nil {
		t.Fatal(err)
	}
	forged()

	removeGuardTable(t, n) // somebody flushes the rules; the next pod brings them back
	if got := startPod(t, again, "late").say(to.String() + ":80"); got == "" {
		t.Error("the late pod reaches nobody")
	}
	forged()
}

// TestPodsReachTheMachineByTheBridgeAlone: what a bridge hands up beside its own path, frames to groups of switches, comes from no pod. The rules
// for what pods send to the machine know the bridge, not its ports.
func TestPodsReachTheMachineByTheBridgeAlone(t *testing.T) {
	n := newNetwork(t)
	rogue := startPod(t, n, "rogue")
	to := n.pool().gateway()
	countDatagrams(forgedPort) // it listens from now on
	for last := range byte(16) {
		group := net.HardwareAddr{1, 0x80, 0xc2, 0, 0, last}
		for _, from := range []netip.Addr{rogue.endpoint.Address, netip.MustParseAddr("10.199.8.2")} {
			if got := rogue.say(fmt.Sprintf("forge %s %s %s -", group, from, to)); got != "" {
				t.Fatal(got)
			}
			if got := countDatagrams(forgedPort); got != 0 && (last != 0 || from != rogue.endpoint.Address) {
				t.Errorf("to %s from %s: %d datagrams arrive", group, from, got)
			}
		}
	}
}

func removeGuardTable(t *testing.T, n *Network) {
	t.Helper()
	conn, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	conn.DelTable(&nftables.Table{Family: nftables.TableFamilyBridge, Name: guard.TableName(n.config.Bridge)})
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
}

var listening = map[int]net.PacketConn{}

// countDatagrams counts what came to a port since it was called last; it listens from the first call on.
func countDatagrams(port int) int {
	if listening[port] == nil {
		listening[port], _ = net.ListenPacket("udp4", fmt.Sprintf(":%d", port))
		return 0
	}
	_ = listening[port].SetReadDeadline(time.Now().Add(forgedWait))
	for count := 0; ; count++ {
		if _, _, err := listening[port].ReadFrom(make([]byte, 16)); err != nil {
			return count
		}
	}
}

// forge sends a frame with a datagram, as any process with NET_RAW can, and with tags before it, in hexadecimal digits; "-" is none.
func forge(hardware, from, to, tags string) error {
	link, err := netlink.LinkByName(PodInterface)
	if err != nil {
		return err
	}
	destination, err := net.ParseMAC(hardware)
	if err != nil {
		return err
	}
	socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	frame := append(append([]byte{}, destination...), link.Attrs().HardwareAddr...)
	tagBytes, err := hex.DecodeString(strings.TrimPrefix(tags, "-"))
	if err != nil {
		return err
	}
	frame = append(frame, tagBytes...)
	frame = binary.BigEndian.AppendUint16(frame, unix.ETH_P_IP)
	frame = append(frame, datagram(netip.MustParseAddr(from), netip.MustParseAddr(to))...)
	return unix.Sendto(socket, frame, 0, &unix.SockaddrLinklayer{Ifindex: link.Attrs().Index, Halen: uint8(len(destination))})
}

// datagram is an IPv4 packet without a checksum of UDP, which may be left out.
func datagram(from, to netip.Addr) []byte {
	const headerBytes, udpBytes, text = 20, 8, "x"
	p := []byte{0x45, 0, 0, headerBytes + udpBytes + byte(len(text)), 0, 0, 0, 0, 64, unix.IPPROTO_UDP, 0, 0}
	p = append(append(p, from.AsSlice()...), to.AsSlice()...)
	sum := uint32(0)
	for i := 0; i < headerBytes; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(p[i:]))
	}
	binary.BigEndian.PutUint16(p[10:], ^uint16(sum+sum>>16))
	for _, field := range []uint16{forgedPort, forgedPort, udpBytes + uint16(len(text)), 0} {
		p = binary.BigEndian.AppendUint16(p, field)
	}
	return append(p, text...)
}
