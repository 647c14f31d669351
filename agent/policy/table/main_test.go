package table

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/network"
)

const insideEnv = "SETPOINT_TEST_INSIDE"

// TestMain runs the tests in a network namespace of their own, which is the node.
func TestMain(m *testing.M) {
	if os.Geteuid() != 0 || os.Getenv(insideEnv) != "" {
		os.Exit(m.Run())
	}
	command := exec.Command("/proc/self/exe", os.Args[1:]...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Env = append(os.Environ(), insideEnv+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	err := command.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces")
	}
	if !network.HasIPv6() {
		t.Skip("needs a kernel with IPv6: pods have addresses of both families")
	}
}

const (
	servePort = 80
	// passTime is how long a packet may take that passes, and lostTime how long one is awaited that must not.
	passTime = 5 * time.Second
	lostTime = 150 * time.Millisecond
)

// testPod is a network namespace behind the node, which routes. It echoes on TCP and counts what it hears by UDP, on servePort.
type testPod struct {
	t       *testing.T
	address netip.Addr
	ns      netns.NsHandle
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
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := netns.Get()
	p.check(err)
	defer own.Close()
	p.ns, err = netns.New() // the thread is in it now
	p.check(errors.Join(err, netns.Set(own)))
	p.t.Cleanup(func() { p.ns.Close() })
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.Flags = name, net.FlagUp
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(p.ns))}
	p.check(netlink.LinkAdd(pair))
	p.t.Cleanup(func() { _ = netlink.LinkDel(pair) })
	gateways := []netip.Addr{netip.MustParseAddr("169.254.1.1"), netip.MustParseAddr("fe80::1")}
	for i, address := range []netip.Addr{p.address, p.in("6")} {
		p.check(errors.Join(
			netlink.AddrAdd(pair, &netlink.Addr{IPNet: only(gateways[i]), Flags: unix.IFA_F_NODAD}),
			netlink.RouteAdd(&netlink.Route{LinkIndex: pair.Index, Dst: only(address), Scope: netlink.SCOPE_LINK})))
	}
	p.check(errors.Join(os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0),
		os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("1"), 0)))
	inside, err := netlink.NewHandleAt(p.ns, unix.NETLINK_ROUTE)
	p.check(err)
	defer inside.Close()
	lo, err := inside.LinkByName("lo")
	p.check(err)
	p.check(inside.LinkSetUp(lo))
	eth, err := inside.LinkByName("eth0")
	p.check(err)
	p.check(inside.LinkSetUp(eth))
	for i, address := range []netip.Addr{p.address, p.in("6")} {
		p.check(inside.AddrAdd(eth, &netlink.Addr{IPNet: only(address), Flags: unix.IFA_F_NODAD}))
		p.check(inside.RouteAdd(&netlink.Route{LinkIndex: eth.Attrs().Index, Gw: gateways[i].AsSlice(), Flags: int(netlink.FLAG_ONLINK)}))
	}
	_, err = netlink.LinkByName(name) // makes the kernel see that the link is up
	p.check(err)
}

// only is a range of one address.
func only(address netip.Addr) *net.IPNet {
	return &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(address.BitLen(), address.BitLen())}
}

func (p *testPod) check(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// inside runs do in the pod's namespace: sockets stay where they were made.
func inside[T any](p *testPod, do func() (T, error)) (T, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := netns.Get()
	p.check(err)
	defer own.Close()
	p.check(netns.Set(p.ns))
	defer func() { p.check(netns.Set(own)) }()
	return do()
}

func (p *testPod) serve() {
	for _, version := range []string{"4", "6"} {
		at := netip.AddrPortFrom(p.in(version), servePort).String()
		listener, err := inside(p, func() (net.Listener, error) { return net.Listen("tcp"+version, at) })
		p.check(err)
		packets, err := inside(p, func() (net.PacketConn, error) { return net.ListenPacket("udp"+version, at) })
		p.check(err)
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
	conn, err := inside(p, func() (net.Conn, error) { return net.DialTimeout(network, at, within) })
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

func echoes(conn net.Conn, within time.Duration) bool {
	_ = conn.SetDeadline(time.Now().Add(within))
	if _, err := conn.Write([]byte("x")); err != nil {
		return false
	}
	n, err := conn.Read(make([]byte, 64))
	return err == nil && n > 0
}
