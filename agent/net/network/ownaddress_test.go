package network

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/ownaddress"
)

// TestPodsReachAnAddressOfTheMachine: what listens there answers pods and the machine, from that address.
func TestPodsReachAnAddressOfTheMachine(t *testing.T) {
	n := newNetwork(t)
	pod := startPod(t, n, "one")
	own := ownaddress.New(53, 53)
	first, second := netip.MustParseAddr("10.197.0.9"), netip.MustParseAddr("10.197.0.10")
	for _, address := range []netip.Addr{first, second, second} {
		if err := own.Hold(address); err != nil {
			t.Fatal(err)
		}
		if held := own.Held(); held != address {
			t.Errorf("held %s, want %s", held, address)
		}
	}
	listener, err := net.Listen("tcp", "10.197.0.10:80")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go answerWithPeer(listener)
	if got := pod.say("10.197.0.10:80"); got != "10.199.7.2" {
		t.Errorf("from a pod: %s", got)
	}
	if got := ask("10.197.0.10:80"); got != "10.197.0.10" {
		t.Errorf("from the machine: %s", got)
	}
	if err := own.Hold(netip.Addr{}); err != nil || own.Held().IsValid() {
		t.Errorf("%v, still held: %s", err, own.Held())
	}
	if _, err := net.Listen("tcp", "10.197.0.10:81"); err == nil {
		t.Error("the machine still has the address")
	}
}

// TestAPortThatOthersHave: a DNS server of the machine has port 53 of all addresses, and what is sent to that port of ours arrives at
// another port all the same, also after somebody has flushed the table or taken the address away.
func TestAPortThatOthersHave(t *testing.T) {
	n := newNetwork(t)
	pod := startPod(t, n, "one")
	others, err := net.Listen("tcp", "0.0.0.0:53")
	if err != nil {
		t.Fatal(err)
	}
	defer others.Close()
	go answerWithPeer(others)
	own, address := ownaddress.New(53, 9053), netip.MustParseAddr("10.197.0.10")
	thing := own.Thing()
	if whole, err := thing.Whole(); !whole || err != nil {
		t.Errorf("nothing is wanted: %v %v", whole, err)
	}
	if err := own.Hold(address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Hold(netip.Addr{}); err != nil {
			t.Error(err)
		}
	})
	listenNamed(t, "10.197.0.10:9053")
	reached := func(when string) {
		t.Helper()
		if whole, err := thing.Whole(); !whole || err != nil {
			t.Errorf("%s: not whole: %v", when, err)
		}
		for who, got := range map[string]string{
			"a pod": pod.say("10.197.0.10:53"), "the machine": ask("10.197.0.10:53"), "the machine over UDP": askUDP(t, "10.197.0.10:53"),
		} {
			if got != "ours" {
				t.Errorf("%s: %s reaches %q", when, who, got)
			}
		}
	}
	reached("at first")
	if got := ask("127.0.0.1:53"); got != "127.0.0.1" {
		t.Errorf("the others' server says %q", got)
	}
	for what, change := range map[string]func() error{
		"no table": func() error {
			conn := new(nftables.Conn)
			conn.DelTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: ownaddress.TableName})
			return conn.Flush()
		},
		"no address": func() error { return ownaddress.New(0, 0).Hold(netip.Addr{}) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if whole, _ := thing.Whole(); whole {
			t.Errorf("%s: whole", what)
		}
		if err := thing.PutBack(t.Context()); err != nil {
			t.Error(err)
		}
		reached("after " + what)
	}
}

// TestOneSourceLeavesOthersTheirPlaces: a pod that sends more than its share loses what is beyond it, by either port of the listener, and
// no other does. A burst as programs make it is no more than a share. The machine has none.
func TestOneSourceLeavesOthersTheirPlaces(t *testing.T) {
	n := newNetwork(t)
	loud, quiet := startPod(t, n, "loud"), startPod(t, n, "quiet")
	own, address := ownaddress.New(53, 9053), netip.MustParseAddr("10.197.0.10")
	if err := own.Hold(address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Hold(netip.Addr{}) })
	listenNamed(t, "10.197.0.10:9053")
	dropped := func() uint64 {
		t.Helper()
		packets, err := own.Dropped()
		if err != nil {
			t.Fatal(err)
		}
		return packets
	}
	for _, at := range []string{"10.197.0.10:53", "10.197.0.10:9053"} {
		if got := errorText(burst("5000", at)) + quiet.say("burst 500 "+at); got != "" || dropped() > 0 {
			t.Fatalf("the machine, and a pod within its share: %d are lost, %s", dropped(), got)
		}
	}
	for _, command := range []string{"burst 5000 10.197.0.10:53", "burst 5000 10.197.0.10:9053", "connect 400 10.197.0.10:53", "connect 400 10.197.0.10:9053"} {
		before := dropped()
		for tries := 0; dropped() == before && tries < 20; tries++ { // a share fills while a slow machine sends
			loud.say(command)
		}
		if dropped() == before {
			t.Fatalf("%s: nothing is lost", command)
		}
		before = dropped()
		quiet.say("burst 100 10.197.0.10:53")
		if got := quiet.say("10.197.0.10:53"); got != "ours" || dropped() != before {
			t.Errorf("%s: the other asks and gets %q, and %d of its packets are lost", command, got, dropped()-before)
		}
	}
}

// burst sends so many packets, of a byte each.
func burst(packets, address string) error {
	conn, err := net.Dial("udp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	count, err := strconv.Atoi(packets)
	for range count {
		if _, failed := conn.Write([]byte{0}); failed != nil {
			return failed
		}
	}
	return err
}

// connect begins so many connections at once, and ends them.
func connect(connections, address string) {
	count, _ := strconv.Atoi(connections)
	var all sync.WaitGroup
	for range count {
		all.Go(func() { ask(address) })
	}
	all.Wait()
}

// TestHostPortsTakeNothingOfServices: a pod whose host port has the number of a node port, or of the DNS, gets neither, and none of an
// address of Services that is the machine's, whichever table was made last.
func TestHostPortsTakeNothingOfServices(t *testing.T) {
	n := newNetwork(t) // 10.197.0.0/16 are Services
	own, address := ownaddress.New(53, 9053), netip.MustParseAddr("10.197.0.10")
	if err := own.Hold(address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Hold(netip.Addr{}) })
	listenNamed(t, "10.197.0.10:9053")
	served := startPod(t, n, "served")
	translation := NewTranslation(TranslationConfig{})
	translate(t, translation, tcp("0.0.0.0:31000", netip.AddrPortFrom(served.endpoint.Address, 80).String()))
	closed := func(port uint16) HostPort { return HostPort{Protocol: unix.IPPROTO_TCP, Port: port, PodPort: 81} } // nobody listens there
	taker := startPod(t, n, "taker", closed(53), closed(31000), hostPort("", 9153))
	check := func(when string) {
		t.Helper()
		for at, want := range map[string]string{"10.197.0.10:53": "ours", "10.199.7.1:31000": ask("10.199.7.2:80"), "10.197.0.10:9153": "refused"} {
			if got := ask(at); !strings.HasSuffix(got, want) {
				t.Errorf("%s: %s answers %q, want %q", when, at, got, want)
			}
		}
		if got := served.say("10.197.0.10:53"); got != "ours" {
			t.Errorf("%s: a pod asks the DNS and reaches %q", when, got)
		}
	}
	check("at first")
	n.mu.Lock()
	err := n.setPorts(n.hostPorts) // made last
	n.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	check("made anew")
	if err := n.openPorts(Endpoint{Address: taker.endpoint.Address, HostPorts: []HostPort{hostPort("10.197.0.10", 54)}}); !errors.Is(err, ErrPortInUse) {
		t.Errorf("a port of an address of Services: %v", err)
	}
}

// listenNamed answers "ours" at the address, over TCP and UDP.
func listenNamed(t *testing.T, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	packets, err := net.ListenPacket("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close(); packets.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("ours"))
			conn.Close()
		}
	}()
	go func() {
		for {
			_, from, err := packets.ReadFrom(make([]byte, 1))
			if err != nil {
				return
			}
			_, _ = packets.WriteTo([]byte("ours"), from)
		}
	}()
}

func askUDP(t *testing.T, address string) string {
	t.Helper()
	conn, err := net.Dial("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Write([]byte{0}); err != nil {
		return err.Error()
	}
	answer := make([]byte, 16)
	read, err := conn.Read(answer)
	if err != nil {
		return err.Error()
	}
	return string(answer[:read])
}

// answerWithPeer says to each client where it comes from.
func answerWithPeer(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte(conn.RemoteAddr().(*net.TCPAddr).IP.String()))
		conn.Close()
	}
}
