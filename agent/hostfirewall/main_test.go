package hostfirewall

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const insideEnv = "SETPOINT_TEST_INSIDE"

// TestMain runs the tests in a network namespace of their own, which is the node.
func TestMain(m *testing.M) {
	if os.Getenv(insideEnv) != "" { // without a loopback that is up Go listens on no address of IPv6
		if lo, err := netlink.LinkByName("lo"); err != nil || netlink.LinkSetUp(lo) != nil {
			fmt.Fprintln(os.Stderr, "no loopback", err)
			os.Exit(1)
		}
	}
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

// neighbour is a network namespace at a link of the node's.
type neighbour struct {
	t    *testing.T
	ns   netns.NsHandle
	node []netip.Addr // the node's addresses on the link
}

// newNeighbour makes the link of this name; each pair are the addresses of the node and the neighbour.
func newNeighbour(t *testing.T, name string, pairs ...[2]string) *neighbour {
	t.Helper()
	n := &neighbour{t: t}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := netns.Get()
	n.check(err)
	defer own.Close()
	n.ns, err = netns.New() // the thread is in it now
	n.check(errors.Join(err, netns.Set(own)))
	t.Cleanup(func() { n.ns.Close() })
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.Flags = name, net.FlagUp
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(n.ns))}
	n.check(netlink.LinkAdd(pair))
	t.Cleanup(func() { _ = netlink.LinkDel(pair) })
	inside, err := netlink.NewHandleAt(n.ns)
	n.check(err)
	defer inside.Close()
	eth, err := inside.LinkByName("eth0")
	n.check(err)
	n.check(inside.LinkSetUp(eth))
	for _, p := range pairs {
		node, there := netip.MustParsePrefix(p[0]), netip.MustParsePrefix(p[1])
		n.check(netlink.AddrAdd(pair, &netlink.Addr{IPNet: ipNet(node), Flags: unix.IFA_F_NODAD}))
		n.check(inside.AddrAdd(eth, &netlink.Addr{IPNet: ipNet(there), Flags: unix.IFA_F_NODAD}))
		n.node = append(n.node, node.Addr())
	}
	return n
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func (n *neighbour) check(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// inside runs do in the neighbour's namespace: sockets stay where they were made.
func inside[T any](n *neighbour, do func() (T, error)) (T, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := netns.Get()
	n.check(err)
	defer own.Close()
	n.check(netns.Set(n.ns))
	defer func() { n.check(netns.Set(own)) }()
	return do()
}
