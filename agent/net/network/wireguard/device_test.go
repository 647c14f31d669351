package wireguard

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/setpoint-io/setpoint/agent/net/network/networktest"
)

const (
	deviceName = "sptestwg"
	port       = 51820
	// patience is for a machine that does much else.
	patience = 30 * time.Second
)

func TestMain(m *testing.M) {
	ReexecMain()
	os.Exit(m.Run())
}

// host is a network namespace with a device.
type host struct {
	ns      netns.NsHandle
	dir     string
	key     wgtypes.Key
	address netip.Addr   // on the wire
	pods    netip.Prefix // behind its device; the device has the first
}

// TestTwoEnds: packets go between the devices of two hosts, and only those of the peer's range; what is told twice changes
// nothing; a device whose process was killed comes back; one that is removed takes its process with it.
func TestTwoEnds(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces")
	}
	a, b := newHost(t, 1), newHost(t, 2)
	wire(t, a, b)
	for range 2 { // the second time adopts
		a.join(t, b)
		b.join(t, a)
	}
	exchange(t, a, b)
	exchange(t, b, a)

	before := a.device(t)
	a.join(t, b)
	if after := a.device(t); len(after.Peers) != 1 || before.Peers[0].LastHandshakeTime.Unix() <= 0 || !after.Peers[0].LastHandshakeTime.Equal(before.Peers[0].LastHandshakeTime) {
		t.Errorf("telling it again changed %+v to %+v", before, after)
	}

	if pids := b.processes(t); len(pids) > 0 { // this kernel has no devices of its own
		for _, pid := range pids {
			expectNoPrivileges(t, pid)
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		b.awaitNone(t)
	} else {
		b.within(t, func() error { return Remove(deviceName) })
	}
	for end := time.Now().Add(patience); b.tryJoin(a) != nil; { // the kernel takes its time to remove what the process had
		if time.Now().After(end) {
			t.Fatal(b.tryJoin(a))
		}
	}
	exchange(t, a, b)

	stranger := *a
	stranger.pods = netip.MustParsePrefix("10.199.77.0/24")
	b.join(t, &stranger) // it takes nothing from the addresses of a any more
	if err := try(a, b); err == nil {
		t.Error("a packet passed whose address is not of its node's range")
	}
	for _, h := range []*host{a, b} {
		h.within(t, func() error { return Remove(deviceName) })
		h.awaitNone(t)
	}
}

func newHost(t *testing.T, number int) *host {
	t.Helper()
	h := &host{
		dir: filepath.Join(t.TempDir(), "wireguard"), address: netip.AddrFrom4([4]byte{10, 198, 0, byte(number)}),
		pods: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 199, byte(number), 0}), 24),
	}
	var err error
	if h.key, err = Key(h.dir); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if h.ns, err = netns.New(); err != nil {
		t.Fatal(err)
	}
	if err := netns.Set(own); err != nil {
		panic(err) // this thread must not go on in there
	}
	t.Cleanup(func() {
		h.within(t, func() error { return Remove(deviceName) })
		h.ns.Close()
	})
	return h
}

// within runs in the host's network.
func (h *host) within(t *testing.T, do func() error) {
	t.Helper()
	if err := h.do(do); err != nil {
		t.Fatal(err)
	}
}

func (h *host) do(do func() error) error {
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		err := netns.Set(h.ns)
		if err == nil {
			err = do()
		}
		failed <- err
	}()
	return <-failed
}

// wire connects two hosts.
func wire(t *testing.T, a, b *host) {
	t.Helper()
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.Namespace = "wire", netlink.NsFd(a.ns)
	veth := &netlink.Veth{LinkAttrs: attributes, PeerName: "wire", PeerNamespace: netlink.NsFd(b.ns)}
	if err := netlink.LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	for _, h := range []*host{a, b} {
		h.within(t, func() error { return up("wire", netip.PrefixFrom(h.address, 24)) })
	}
}

func up(name string, address netip.Prefix) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return errors.Join(netlink.AddrReplace(link, &netlink.Addr{IPNet: networktest.IPNet(address)}), netlink.LinkSetUp(link))
}

// join makes the host's device with one peer.
func (h *host) join(t *testing.T, peer *host) {
	t.Helper()
	if err := h.tryJoin(peer); err != nil {
		t.Fatal(err)
	}
}

func (h *host) tryJoin(peer *host) error {
	return h.do(func() error {
		d, err := Open(deviceName, h.dir)
		if err != nil {
			return err
		}
		err = d.Set(Config{Key: h.key, Port: port, Peers: []Peer{{
			Key: peer.key.PublicKey(), Endpoint: netip.AddrPortFrom(peer.address, port), Ranges: []netip.Prefix{peer.pods},
		}}})
		if err == nil {
			err = up(deviceName, netip.PrefixFrom(h.pods.Addr(), 32))
		}
		if err != nil {
			return err
		}
		return netlink.RouteReplace(&netlink.Route{Dst: networktest.IPNet(peer.pods), LinkIndex: d.Link.Attrs().Index, Scope: netlink.SCOPE_LINK})
	})
}

func (h *host) device(t *testing.T) (present *wgtypes.Device) {
	t.Helper()
	h.within(t, func() error {
		d, err := Open(deviceName, h.dir)
		if err == nil {
			present, err = d.end.read()
		}
		return err
	})
	return present
}

func exchange(t *testing.T, from, to *host) {
	t.Helper()
	if err := try(from, to); err != nil {
		t.Fatal(err)
	}
}

// tryTimeMax is for the first packet, which waits until the ends have agreed upon keys.
const tryTimeMax = 3 * time.Second

// try asks a server behind the device of one host from that of the other whom it sees.
func try(from, to *host) error {
	var listener net.Listener
	if err := to.do(func() (err error) {
		listener, err = net.Listen("tcp", net.JoinHostPort(to.pods.Addr().String(), "0"))
		return err
	}); err != nil {
		return err
	}
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(c, c.RemoteAddr().(*net.TCPAddr).IP)
			c.Close()
		}
	}()
	return from.do(func() error {
		c, err := net.DialTimeout("tcp", listener.Addr().String(), tryTimeMax)
		if err != nil {
			return err
		}
		defer c.Close()
		text, err := bufio.NewReader(c).ReadString('\n')
		if err == nil && strings.TrimSpace(text) != from.pods.Addr().String() {
			err = fmt.Errorf("%s is seen as %s", from.pods.Addr(), text)
		}
		return err
	})
}

// processes are those that are the host's device.
func (h *host) processes(t *testing.T) (pids []int) {
	t.Helper()
	h.within(t, func() error {
		own, err := os.Readlink(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
		if err != nil {
			return err
		}
		all, err := filepath.Glob("/proc/[0-9]*")
		for _, dir := range all {
			name, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // it may have ended
			if ns, err := os.Readlink(filepath.Join(dir, "ns/net")); err == nil && ns == own && strings.HasPrefix(string(name), processName) {
				pid, _ := strconv.Atoi(filepath.Base(dir))
				pids = append(pids, pid)
			}
		}
		return err
	})
	return pids
}

func (h *host) awaitNone(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(patience); len(h.processes(t)) > 0; {
		if time.Now().After(end) {
			t.Fatal("the process of a device goes on without it")
		}
		runtime.Gosched()
	}
}

func expectNoPrivileges(t *testing.T, pid int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", fmt.Sprintf("Uid:\t%d\t", processUser)} {
		if !strings.Contains(string(status), want) {
			t.Errorf("%q is not in %s", want, status)
		}
	}
}
