package network

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// advertiseTimeMax is for a loaded machine: a packet crosses the bridge in microseconds.
const advertiseTimeMax = 10 * time.Second

func TestNobodyBelievesAPodThatCallsItselfARouter(t *testing.T) {
	n := newNetwork(t)
	rogue, neighbour := startPod(t, n, "rogue"), startPod(t, n, "neighbour")
	for deadline := time.Now().Add(advertiseTimeMax); advertisementsHeard() == 0; {
		if got := rogue.say("advertise"); got != "sent" {
			t.Fatalf("advertise: %s", got)
		}
		if time.Now().After(deadline) {
			t.Fatal("the host heard no advertisement: this proves nothing")
		}
	}
	if got := learned(n.config.Bridge); got != "nothing" {
		t.Errorf("the host learned %s", got)
	}
	if got := neighbour.say("heard"); got != "0" {
		t.Errorf("the neighbour heard %s advertisements", got)
	}
	if got := neighbour.say("learned"); got != "nothing" {
		t.Errorf("the neighbour learned %s", got)
	}
}

// advertise sends a router advertisement, as a default pod with NET_RAW can: "I am your router, and 2001:db8:bad::/64 is here".
func advertise() string {
	link, err := netlink.LinkByName(PodInterface)
	if err != nil {
		return err.Error()
	}
	own := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP("fe80::bad"), Mask: net.CIDRMask(64, 128)}, Flags: unix.IFA_F_NODAD}
	if err := netlink.AddrReplace(link, own); err != nil {
		return err.Error()
	}
	conn, err := net.ListenPacket("ip6:ipv6-icmp", "fe80::bad%"+PodInterface)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	if err := ipv6.NewPacketConn(conn).SetMulticastHopLimit(255); err != nil { // the kernel refuses what was routed
		return err.Error()
	}
	message := []byte{134, 0, 0, 0, 64, 0, 0x07, 0x08, 0, 0, 0, 0, 0, 0, 0, 0} // a router for half an hour; the kernel sums up
	message = append(message, 3, 4, 64, 0xc0, 0, 0, 0x07, 0x08, 0, 0, 0x07, 0x08, 0, 0, 0, 0)
	message = append(message, net.ParseIP("2001:db8:bad::")...)
	if _, err := conn.WriteTo(message, &net.IPAddr{IP: net.IPv6linklocalallnodes, Zone: PodInterface}); err != nil {
		return err.Error()
	}
	return "sent"
}

// advertisementsHeard counts those that reached this namespace, believed or not.
func advertisementsHeard() int {
	data, err := os.ReadFile("/proc/net/snmp6")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		var name string
		var count int
		if n, _ := fmt.Sscan(line, &name, &count); n == 2 && name == "Icmp6InRouterAdvertisements" {
			return count
		}
	}
	return 0
}

// learned is what device has from advertisements: addresses, a default route.
func learned(device string) string {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return err.Error()
	}
	var out []string
	addresses, err := netlink.AddrList(link, netlink.FAMILY_V6)
	if err != nil {
		return err.Error()
	}
	for _, a := range addresses {
		if !a.IP.IsLinkLocalUnicast() {
			out = append(out, "address "+a.IPNet.String())
		}
	}
	routes, err := netlink.RouteList(link, netlink.FAMILY_V6)
	if err != nil {
		return err.Error()
	}
	for _, r := range routes {
		if r.Gw != nil {
			out = append(out, "route by "+r.Gw.String())
		}
	}
	if out == nil {
		return "nothing"
	}
	return strings.Join(out, ", ")
}
