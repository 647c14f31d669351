package table

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/networktest"
)

// TestMain runs the tests in a network namespace of their own, which is the node.
func TestMain(m *testing.M) { networktest.Main(m) }

func needRoot(t testing.TB) {
	t.Helper()
	if missing := networktest.Missing(); missing != "" {
		t.Skip(missing)
	}
}

const (
	servePort = 80
	// passTime is how long a packet may take that passes, and lostTime how long one is awaited that must not.
	passTime = 5 * time.Second
	lostTime = 150 * time.Millisecond
	// tryTime is after how long a packet is sent again.
	tryTime = time.Second
)

// testPod is a network namespace behind the node, which routes. It echoes on TCP and counts what it hears by UDP, on servePort.
type testPod struct {
	*networktest.Neighbour
	t       *testing.T
	address netip.Addr
	heard   atomic.Int64
}

var links atomic.Int64

// in is the pod's address of the network's family.
func (p *testPod) in(network string) netip.Addr {
	if strings.HasSuffix(network, "6") {
		return secondOf(p.address.String())
	}
	return p.address
}

func newPod(t *testing.T, address string) *testPod {
	t.Helper()
	needRoot(t)
	p := &testPod{t: t, address: netip.MustParseAddr(address)}
	p.plug(fmt.Sprintf("pod%d", links.Add(1)))
	p.serve()
	return p
}

// plug makes the namespace, and a route to it.
func (p *testPod) plug(name string) {
	p.t.Helper()
	p.Neighbour = networktest.NewNeighbour(p.t, name)
	p.Check(errors.Join(os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0),
		os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("1"), 0)))
	for gateway, address := range map[string]netip.Addr{"169.254.1.1": p.address, "fe80::1": p.in("6")} {
		at := netip.MustParseAddr(gateway)
		p.Address(only(at), only(address))
		p.Check(errors.Join(
			netlink.RouteAdd(&netlink.Route{LinkIndex: p.Link.Attrs().Index, Dst: networktest.IPNet(only(address)), Scope: netlink.SCOPE_LINK}),
			p.Netlink.RouteAdd(&netlink.Route{LinkIndex: p.Ethernet.Attrs().Index, Gw: at.AsSlice(), Flags: int(netlink.FLAG_ONLINK)})))
	}
	_, err := netlink.LinkByName(name) // makes the kernel see that the link is up
	p.Check(err)
	for _, address := range []netip.Addr{p.address, p.in("6")} {
		p.settle(address)
	}
}

// settle waits until the pod knows an address for its own: the kernel adds one of IPv6 first, and the route to it later.
func (p *testPod) settle(address netip.Addr) {
	p.t.Helper()
	for end := time.Now().Add(passTime); ; time.Sleep(time.Millisecond) {
		routes, err := p.Netlink.RouteGet(address.AsSlice())
		if err == nil && len(routes) == 1 && routes[0].Type == unix.RTN_LOCAL {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("%s is not the pod's own: %v %v", address, routes, err)
		}
	}
}

// only is a range of one address.
func only(address netip.Addr) netip.Prefix { return netip.PrefixFrom(address, address.BitLen()) }

func (p *testPod) serve() {
	for _, version := range []string{"4", "6"} {
		at := netip.AddrPortFrom(p.in(version), servePort).String()
		listener, err := networktest.Inside(p.Neighbour, func() (net.Listener, error) { return net.Listen("tcp"+version, at) })
		p.Check(err)
		packets, err := networktest.Inside(p.Neighbour, func() (net.PacketConn, error) { return net.ListenPacket("udp"+version, at) })
		p.Check(err)
		p.t.Cleanup(func() { _, _ = listener.Close(), packets.Close() })
		go accept(listener)
		go p.answer(packets)
	}
}

func accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go echo(conn)
	}
}

func (p *testPod) answer(packets net.PacketConn) {
	buffer := make([]byte, 64)
	for {
		n, from, err := packets.ReadFrom(buffer)
		if err != nil {
			return
		}
		p.heard.Add(1)
		_, _ = packets.WriteTo(buffer[:n], from)
	}
}

func echo(conn net.Conn) {
	defer conn.Close()
	buffer := make([]byte, 64)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return
		}
		if _, err := conn.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// open is a connection to another pod, nil if none is made.
func (p *testPod) open(network string, to netip.Addr, within time.Duration) net.Conn {
	at := netip.AddrPortFrom(to, servePort).String()
	conn, err := networktest.Inside(p.Neighbour, func() (net.Conn, error) { return net.DialTimeout(network, at, within) })
	if err != nil {
		return nil
	}
	p.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// reaches asks for an echo. want only says how long to wait for it.
func (p *testPod) reaches(network string, to netip.Addr, want bool) bool {
	within := lostTime
	if want {
		within = passTime
	}
	conn := p.open(network, to, within)
	return conn != nil && echoes(conn, within)
}

// echoes asks until there is an answer: nothing sends a lost packet of UDP again.
func echoes(conn net.Conn, within time.Duration) bool {
	for end := time.Now().Add(within); time.Now().Before(end); {
		try := time.Now().Add(tryTime)
		if try.After(end) {
			try = end
		}
		_ = conn.SetDeadline(try)
		if _, err := conn.Write([]byte("x")); err != nil {
			return false
		}
		n, err := conn.Read(make([]byte, 64))
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err == nil && n > 0
		}
	}
	return false
}
