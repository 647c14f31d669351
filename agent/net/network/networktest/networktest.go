package networktest

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

// Main runs the tests in a network namespace of their own if they are root's, and ends the process.
func Main(m *testing.M) {
	Enter(unix.CLONE_NEWNET)
	os.Exit(m.Run())
}

// Enter runs root's test binary again in namespaces of its own, of the kinds CLONE_NEW…, of which one is that of networks, and ends this
// process as that one ends. There it returns; the loopback is up, and what is mounted from then on the machine does not see.
func Enter(namespaces uintptr) {
	if os.Geteuid() != 0 {
		return
	}
	if os.Getenv(insideEnv) == "" {
		os.Exit(again(namespaces))
	}
	err := errors.Join(loopbackUp(), keepMounts(namespaces))
	if err != nil {
		fmt.Fprintln(os.Stderr, "namespaces for the tests:", err)
		os.Exit(1)
	}
}

func again(namespaces uintptr) (code int) {
	command := exec.Command("/proc/self/exe", os.Args[1:]...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Env = append(os.Environ(), insideEnv+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Pdeathsig: syscall.SIGKILL}
	err := command.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "namespaces for the tests:", err)
		return 1
	}
	return 0
}

// loopbackUp is what a machine has; without it Go listens on no address of IPv6.
func loopbackUp() error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(loopback)
}

// keepMounts tells the machine nothing of mounts, where they have a namespace.
func keepMounts(namespaces uintptr) error {
	if namespaces&unix.CLONE_NEWNS == 0 {
		return nil
	}
	return unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, "")
}

// Missing says what neighbours of both families need and is not here; "": nothing.
func Missing() string {
	if os.Geteuid() != 0 {
		return "needs root: network namespaces"
	}
	if _, err := os.Stat("/proc/self/net/if_inet6"); err != nil {
		return "needs a kernel with IPv6: pods have addresses of both families"
	}
	return ""
}

// Neighbour is a network namespace at the end of a link of the node's.
type Neighbour struct {
	t  testing.TB
	ns netns.NsHandle
	// Link is the node's end.
	Link netlink.Link
	// Netlink is that of the neighbour, and Ethernet its end of the link.
	Netlink  *netlink.Handle
	Ethernet netlink.Link
}

// NewNeighbour makes the namespace and the link of this name, which is up.
func NewNeighbour(t testing.TB, name string) *Neighbour {
	t.Helper()
	n := &Neighbour{t: t}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := netns.Get()
	n.Check(err)
	defer own.Close()
	n.ns, err = netns.New() // the thread is in it now
	n.Check(errors.Join(err, netns.Set(own)))
	t.Cleanup(func() { n.ns.Close() })
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.Flags = name, net.FlagUp
	n.Link = &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(n.ns))}
	n.Check(netlink.LinkAdd(n.Link))
	t.Cleanup(func() { _ = netlink.LinkDel(n.Link) })
	n.Netlink, err = netlink.NewHandleAt(n.ns, unix.NETLINK_ROUTE)
	n.Check(err)
	t.Cleanup(n.Netlink.Close)
	for _, up := range []string{"lo", "eth0"} {
		n.Ethernet, err = n.Netlink.LinkByName(up)
		n.Check(err)
		n.Check(n.Netlink.LinkSetUp(n.Ethernet))
	}
	return n
}

// Address gives the node and the neighbour addresses, with the ranges that they reach by the link.
func (n *Neighbour) Address(node, there netip.Prefix) {
	n.t.Helper()
	n.Check(errors.Join(
		netlink.AddrAdd(n.Link, &netlink.Addr{IPNet: IPNet(node), Flags: unix.IFA_F_NODAD}),
		n.Netlink.AddrAdd(n.Ethernet, &netlink.Addr{IPNet: IPNet(there), Flags: unix.IFA_F_NODAD})))
}

// IPNet is the prefix as netlink has it.
func IPNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// Check ends the test with an error.
func (n *Neighbour) Check(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// Inside runs do in the neighbour's namespace: sockets stay where they were made.
func Inside[T any](n *Neighbour, do func() (T, error)) (T, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := netns.Get()
	n.Check(err)
	defer own.Close()
	n.Check(netns.Set(n.ns))
	defer func() { n.Check(netns.Set(own)) }()
	return do()
}
