package network

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/networktest"
)

// hostPort leads to what each pod of the tests serves. An empty address means all of them.
func hostPort(address string, port uint16) HostPort {
	p := HostPort{Protocol: unix.IPPROTO_TCP, Port: port, PodPort: 80}
	if address != "" {
		p.Address = netip.MustParseAddr(address)
	}
	return p
}

func TestHostPortsLeadToTheirPods(t *testing.T) {
	n := newNetwork(t)
	one := startPod(t, n, "one", hostPort("", 8080), hostPort("127.0.0.1", 8081))
	two := startPod(t, n, "two", hostPort("10.199.7.1", 8081))
	for what, answer := range map[string]struct{ got, want string }{
		"from the machine":               {ask("10.199.7.1:8080"), gatewayOfTest},
		"by loopback":                    {ask("127.0.0.1:8080"), gatewayOfTest},
		"by another address of loopback": {ask("127.0.0.2:8080"), gatewayOfTest},
		"from another pod":               {two.say("10.199.7.1:8080"), "10.199.7.3"},
		"from itself":                    {one.say("10.199.7.1:8080"), gatewayOfTest},
		"one address":                    {ask("127.0.0.1:8081"), gatewayOfTest},
		"the other":                      {one.say("10.199.7.1:8081"), "10.199.7.2"},
		"on neither":                     {ask("127.0.0.2:8081"), "dial tcp 127.0.0.2:8081: connect: connection refused"},
		"a pod's own loopback":           {two.say("127.0.0.1:8080"), "dial tcp 127.0.0.1:8080: connect: connection refused"},
		"the pod's address":              {ask("10.199.7.2:8080"), "dial tcp 10.199.7.2:8080: connect: connection refused"},
	} {
		if answer.got != answer.want {
			t.Errorf("%s: got %q, want %q", what, answer.got, answer.want)
		}
	}
	one.stop(n)
	if got := ask("10.199.7.1:8080"); !strings.Contains(got, "refused") {
		t.Errorf("after the pod: %s", got)
	}
	if got := ask("10.199.7.1:8081"); got != gatewayOfTest {
		t.Errorf("the other pod's: %s", got)
	}
	two.stop(n)
	if slices.Contains(everything(t), n.portsTable()) {
		t.Error("the table is left")
	}
}

func TestPodsDoNotReachTheMachinesLoopback(t *testing.T) {
	n := newNetwork(t)
	listener, err := net.Listen("tcp", "127.0.0.1:8082")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() { // only to tell a connection from none
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	pod := startPod(t, n, "one", hostPort("", 8080))
	if got := pod.say("leave loopback"); got != "" {
		t.Fatal(got)
	}
	if got := pod.say("127.0.0.1:8082"); !strings.Contains(got, "timeout") {
		t.Errorf("got %q", got)
	}
}

// leaveLoopback makes this pod send what is for 127.0.0.1 to its gateway, as CVE-2020-8558 does.
func leaveLoopback() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	eth0, err := netlink.LinkByName(PodInterface)
	if err != nil {
		return err
	}
	own, _ := netlink.ParseAddr("127.0.0.1/8")
	route := &netlink.Route{LinkIndex: eth0.Attrs().Index, Dst: networktest.IPNet(netip.MustParsePrefix("127.0.0.1/32")),
		Gw: net.ParseIP(gatewayOfTest), Flags: int(netlink.FLAG_ONLINK)}
	return errors.Join(netlink.AddrDel(lo, own), sysctl("net/ipv4/conf/all/route_localnet", "1"), netlink.RouteAdd(route))
}

func TestHostPortsInUseAreRefused(t *testing.T) {
	n := newNetwork(t)
	startPod(t, n, "one", hostPort("127.0.0.1", 8080))
	listener, err := net.Listen("tcp", "127.0.0.1:8083")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for what, c := range map[string]struct {
		port HostPort
		want string
	}{
		"by a pod":             {hostPort("127.0.0.1", 8080), "in use by the pod at 10.199.7.2"},
		"by a pod, in part":    {hostPort("", 8080), "in use by the pod at 10.199.7.2"},
		"by a process":         {hostPort("", 8083), "in use by a process of the machine"},
		"not an address":       {hostPort("203.0.113.7", 8084), "cannot assign"},
		"not an address, SCTP": {HostPort{Protocol: unix.IPPROTO_SCTP, Address: netip.MustParseAddr("203.0.113.7"), Port: 8084}, "cannot assign"},
		"SCTP":                 {HostPort{Protocol: unix.IPPROTO_SCTP, Port: 8083, PodPort: 80}, ""},
		"another address":      {hostPort("127.0.0.2", 8080), ""},
	} {
		two := Endpoint{Address: netip.MustParseAddr("10.199.7.9"), HostPorts: []HostPort{c.port}}
		err := errors.Join(n.openPorts(two), n.closePorts(two))
		if got := errorText(err); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
	if got := ask("127.0.0.1:8080"); got != gatewayOfTest {
		t.Errorf("the pod that has it: %s", got)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestARestartedAgentKeepsHostPorts also where the rules were lost.
func TestARestartedAgentKeepsHostPorts(t *testing.T) {
	n := newNetwork(t)
	pod := startPod(t, n, "one", hostPort("", 8080))
	again := New(n.config)
	again.Adopt(pod.endpoint)
	if err := n.closePorts(pod.endpoint); err != nil {
		t.Fatal(err)
	}
	if err := again.SetPodCIDR(netip.MustParsePrefix("10.199.7.0/24"), netip.Prefix{}); err != nil {
		t.Fatal(err)
	}
	if got := ask("127.0.0.1:8080"); got != gatewayOfTest {
		t.Error(got)
	}
	two := startPod(t, again, "two", hostPort("", 8081))
	if got := ask("127.0.0.1:8080") + ask("127.0.0.1:8081"); got != gatewayOfTest+gatewayOfTest {
		t.Errorf("both: %s", got)
	}
	two.stop(again)
	if err := again.Detach(pod.endpoint); err != nil {
		t.Error(err)
	}
}

func TestFlowsOfClosedPortsAreForgotten(t *testing.T) {
	udp := HostPort{Protocol: unix.IPPROTO_UDP, Port: 53, PodPort: 5353}
	pod := netip.MustParseAddr("10.0.0.2")
	before := map[netip.Addr]Endpoint{pod: {HostPorts: []HostPort{hostPort("", 80), udp}}}
	if got := inet.closedPorts(before, before); len(got) != 0 {
		t.Errorf("nothing was closed: %v", got)
	}
	if got, closed := inet.closedPorts(before, nil), netip.MustParseAddrPort("0.0.0.0:53"); len(got) != 1 || len(got[closed]) != 0 {
		t.Errorf("%v", got)
	}
	if got, closed := inet6.closedPorts(before, nil), netip.MustParseAddrPort("[::]:53"); len(got) != 1 || len(got[closed]) != 0 {
		t.Errorf("IPv6: %v", got)
	}
}

// TestPortsOfOneFamilyDoNotOpenAlone: the kernel refuses the rules of IPv6, in which one port leads to two.
func TestPortsOfOneFamilyDoNotOpenAlone(t *testing.T) {
	n := newDualNetwork(t)
	other := startPod(t, n, "other")
	first, second, twin := hostPort("10.199.7.1", 8080), hostPort(secondGatewayOfTest, 8081), hostPort(secondGatewayOfTest, 8081)
	twin.PodPort = 81
	p := launchPod(t)
	defer func() {
		p.in.Close()
		_ = p.command.Wait()
	}()
	pod := Pod{ID: "one", PID: p.command.Process.Pid, HostPorts: []HostPort{first, second, twin}}
	if endpoint, err := n.Attach(pod); err == nil || !strings.Contains(err.Error(), n.portsTable()) {
		t.Fatalf("attached: %v, %v", endpoint, err)
	}
	const address = "10.199.7.1:8080"
	if got := other.say(address); got != "dial tcp "+address+": connect: connection refused" || len(n.hostPorts) > 0 {
		t.Errorf("%s, and %v are held", got, n.hostPorts)
	}
	if slices.Contains(everything(t), n.portsTable()) {
		t.Error("the table of one family is left")
	}
	pod.HostPorts = []HostPort{first, second}
	var err error
	p.endpoint, err = n.Attach(pod)
	check(t, err)
	if got := p.say("go"); got != "listening" {
		t.Fatal(got)
	}
	if got := other.say(address); got != other.endpoint.Address.String() {
		t.Errorf("without the twin: %s", got)
	}
	check(t, n.Detach(p.endpoint))
}
