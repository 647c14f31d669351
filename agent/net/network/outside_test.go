package network

import (
	"bufio"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const (
	outsider = "192.0.2.2"
	nodeIP   = "192.0.2.1"
)

// startOutsider is a machine that is not of the cluster: its way to the Services' addresses is this one.
func startOutsider(t *testing.T) *testPod {
	t.Helper()
	p := launchPod(t)
	t.Cleanup(func() {
		p.in.Close()
		_ = p.command.Wait()
	})
	pid := p.command.Process.Pid
	link := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "spout0"}, PeerName: PodInterface, PeerNamespace: netlink.NsPid(pid)}
	host, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	check(t, err)
	check(t, host.LinkAdd(link))
	t.Cleanup(func() { _ = host.LinkDel(link) })
	own, err := host.LinkByName("spout0")
	check(t, err)
	setUp(t, host, own, nodeIP)
	_, elsewhere, err := net.ParseCIDR("203.0.113.0/24")
	check(t, err)
	check(t, host.RouteAdd(&netlink.Route{LinkIndex: own.Attrs().Index, Dst: elsewhere, Gw: net.ParseIP(outsider)}))
	inside, err := netns.GetFromPid(pid)
	check(t, err)
	defer inside.Close()
	there, err := netlink.NewHandleAt(inside, unix.NETLINK_ROUTE)
	check(t, err)
	peer, err := there.LinkByName(PodInterface)
	check(t, err)
	setUp(t, there, peer, outsider)
	check(t, there.RouteAdd(&netlink.Route{LinkIndex: peer.Attrs().Index, Gw: net.ParseIP(nodeIP)}))
	if got := p.say("go"); got != "listening" {
		t.Fatal(got)
	}
	return p
}

func setUp(t *testing.T, h *netlink.Handle, link netlink.Link, ip string) {
	t.Helper()
	address := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(ip), Mask: net.CIDRMask(24, 32)}}
	check(t, h.AddrAdd(link, address))
	check(t, h.LinkSetUp(link))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func external(s Service) Service {
	s.External = true
	return s
}

func keeping(s Service, outside ...string) Service {
	s.External, s.KeepsSource = true, true
	for _, e := range outside {
		s.Outside = append(s.Outside, netip.MustParseAddrPort(e))
	}
	return s
}

func from(s Service, sources ...string) Service {
	for _, source := range sources {
		s.Sources = append(s.Sources, netip.MustParsePrefix(source))
	}
	return s
}

func silent(s Service) Service {
	s.Silent = true
	return s
}

func staying(s Service) Service {
	s.Affinity = time.Hour
	return s
}

// TestWhatComesFromOutside: what a machine outside, a pod and the machine itself reach at the same addresses, and what the endpoint
// takes them for.
func TestWhatComesFromOutside(t *testing.T) {
	n := newNetwork(t)
	one, two, out := startPod(t, n, "one"), startPod(t, n, "two"), startOutsider(t)
	translation := newTranslation(t)
	const pod = "10.199.7.3:80"
	translate(t, translation,
		external(tcp("0.0.0.0:30080", pod)),
		keeping(tcp("0.0.0.0:30081", pod), pod),
		keeping(tcp("0.0.0.0:30082", pod)),
		external(tcp("0.0.0.0:30083")),
		external(tcp("203.0.113.5:80", pod)),
		from(external(tcp("203.0.113.6:80", pod)), "192.0.2.0/30", "10.0.0.0/8"),
		from(external(tcp("203.0.113.7:80", pod)), "198.51.100.0/24"),
		silent(tcp("10.197.0.7:80")),
		tcp("10.197.0.8:80", pod),
	)
	const refused, silence = "refused", "timeout"
	for what, c := range map[string]struct{ address, out, pod, machine string }{
		"node port":                     {nodeIP + ":30080", gatewayOfTest, gatewayOfTest, gatewayOfTest},
		"node port at another address":  {gatewayOfTest + ":30080", gatewayOfTest, gatewayOfTest, gatewayOfTest},
		"node port by loopback":         {"127.0.0.1:30080", "", refused, refused},
		"node port, local":              {nodeIP + ":30081", outsider, "10.199.7.2", gatewayOfTest},
		"node port, local, none here":   {nodeIP + ":30082", silence, "10.199.7.2", gatewayOfTest},
		"node port without endpoints":   {nodeIP + ":30083", refused, refused, refused},
		"external address":              {"203.0.113.5:80", gatewayOfTest, gatewayOfTest, gatewayOfTest},
		"from some sources only":        {"203.0.113.6:80", gatewayOfTest, gatewayOfTest, gatewayOfTest},
		"from other sources only":       {"203.0.113.7:80", silence, "", ""},
		"cluster address":               {"10.197.0.8:80", gatewayOfTest, "10.199.7.2", gatewayOfTest},
		"cluster address, none here":    {"10.197.0.7:80", "", silence, ""},
		"another port of it":            {"10.197.0.8:81", refused, refused, refused},
		"a cluster address of nobody's": {"10.197.9.9:80", refused, refused, refused},
	} {
		for _, who := range []struct {
			name, want string
			ask        func(string) string
		}{{"outside", c.out, out.say}, {"a pod", c.pod, one.say}, {"the machine", c.machine, ask}} {
			if who.want == "" {
				continue // it does not matter, or takes long
			}
			got := who.ask(c.address)
			if got != who.want && !(strings.HasPrefix(got, "dial") && strings.HasSuffix(got, who.want)) {
				t.Errorf("%s, %s: got %q, want %q", what, who.name, got, who.want)
			}
		}
	}
	if got := two.say(nodeIP + ":30081"); got != gatewayOfTest {
		t.Errorf("a pod to itself by a node port: %s", got)
	}
}

func TestNodePortsOnLoopback(t *testing.T) {
	n := newNetwork(t)
	one := startPod(t, n, "one")
	translation := newTranslation(t)
	translation.inet.config.LoopbackPorts = true
	translate(t, translation, external(tcp("0.0.0.0:30080", "10.199.7.2:80")))
	if got := ask("127.0.0.1:30080"); got != gatewayOfTest {
		t.Errorf("from the machine: %s", got)
	}
	if got := one.say("127.0.0.1:30080"); !strings.HasSuffix(got, "refused") {
		t.Errorf("a pod's own loopback: %s", got)
	}
}

// TestClientsStayWithTheirEndpoint: the second endpoint refuses, so that answers tell them apart.
func TestClientsStayWithTheirEndpoint(t *testing.T) {
	n := newNetwork(t)
	one := startPod(t, n, "one")
	startPod(t, n, "two")
	const address, good, bad = "10.197.0.8:80", "10.199.7.3:80", "10.199.7.3:81"
	translation := newTranslation(t)
	both := staying(tcp(address, good, bad))
	same := func(what string) string {
		first := one.say(address)
		for range 16 {
			if got := one.say(address); got != first {
				t.Fatalf("%s: %s after %s", what, got, first)
			}
		}
		return first
	}
	translate(t, translation, both)
	first := same("at first")
	again := newTranslation(t) // another agent
	translate(t, again, both)
	if got := same("after a restart"); got != first {
		t.Errorf("after a restart: %s, and before %s", got, first)
	}
	remaining, left := good, "10.199.7.2"
	if first == left {
		remaining, left = bad, "refused"
	}
	change(t, again, []Service{staying(tcp(address, remaining))})
	if got := same("the endpoint is gone"); !strings.HasSuffix(got, left) {
		t.Errorf("the endpoint is gone: %s, want %s", got, left)
	}
	change(t, again, []Service{both})
	if got := same("it is back"); !strings.HasSuffix(got, left) {
		t.Errorf("it is back: %s, want %s", got, left)
	}
}

func TestRulesThatSomebodyFlushesAreMissed(t *testing.T) {
	newNetwork(t)
	translation := newTranslation(t)
	expect := func(what string, want bool) {
		t.Helper()
		if got, err := translation.Damaged(); err != nil || got != want {
			t.Errorf("%s: %v %v", what, got, err)
		}
	}
	expect("before the first", true)
	translate(t, translation, tcp("10.197.0.8:80", "10.199.7.2:80"))
	expect("there", false)
	conn, err := nftables.New()
	check(t, err)
	other := conn.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "others"})
	check(t, conn.Flush())
	expect("others' table", false)
	change(t, translation, []Service{tcp("10.197.0.8:80", "10.199.7.2:80", "10.199.7.3:80")})
	expect("changed", false)
	conn.DelTable(other)
	conn.FlushTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: translationTable})
	check(t, conn.Flush())
	expect("flushed", true)
	translate(t, translation)
	expect("again", false)
	conn.DelTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: translationTable})
	check(t, conn.Flush())
	expect("deleted", true)
	if err := translation.Change([]Service{tcp("10.197.0.8:80")}, nil); err == nil {
		t.Error("changed what is not there")
	}
	if err := translation.Change(nil, nil); !errors.Is(err, ErrNotReplaced) {
		t.Error(err)
	}
}

func TestDatagramsByNodePortLeaveAnEndpointThatIsGone(t *testing.T) {
	newNetwork(t)
	first, second := listenUDP(t), listenUDP(t)
	translation := newTranslation(t)
	client, err := net.Dial("udp", gatewayOfTest+":30053")
	check(t, err)
	defer client.Close()
	_, err = client.Write([]byte{9}) // nobody listens: the kernel remembers a flow to the machine itself
	check(t, err)
	_, _ = client.Read(make([]byte, 1)) // refused
	translate(t, translation)
	for i, server := range []*net.UDPConn{first, second} {
		change(t, translation, []Service{external(udp("0.0.0.0:30053", server.LocalAddr().String()))})
		_, err := client.Write([]byte{byte(i)})
		check(t, err)
		var got [1]byte
		if _, err := server.Read(got[:]); err != nil || got[0] != byte(i) {
			t.Errorf("server %d read %v: %v", i, got, err)
		}
	}
}

// launchPod starts the process; its network comes later.
func launchPod(t *testing.T) *testPod {
	t.Helper()
	p := &testPod{t: t, command: exec.Command("/proc/self/exe", "pod")}
	p.command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	p.command.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0") // or each pod takes a second to end
	var err error
	p.in, err = p.command.StdinPipe()
	check(t, err)
	out, err := p.command.StdoutPipe()
	check(t, err)
	p.out = bufio.NewScanner(out)
	check(t, p.command.Start())
	p.out.Scan()
	return p
}
