package network

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const gatewayOfTest = "10.199.7.1"

// newTranslation removes its table with the test: the network namespace is that of all tests.
func newTranslation(t *testing.T) *Translation {
	t.Helper()
	translation := NewTranslation(TranslationConfig{Bridge: "sptest0"})
	translation.SetRanges(Ranges{Pods: netip.MustParsePrefix("10.199.0.0/16"), Services: netip.MustParsePrefix("10.197.0.0/16")})
	t.Cleanup(func() { translate(t, translation) })
	return translation
}

func translate(t *testing.T, translation *Translation, services ...Service) {
	t.Helper()
	if err := translation.Replace(services); err != nil {
		t.Fatal(err)
	}
}

func change(t *testing.T, translation *Translation, now []Service, gone ...ServiceAddress) {
	t.Helper()
	if err := translation.Change(now, gone); err != nil {
		t.Fatal(err)
	}
}

func tcp(address string, endpoints ...string) Service {
	return service(unix.IPPROTO_TCP, address, endpoints)
}

func udp(address string, endpoints ...string) Service {
	return service(unix.IPPROTO_UDP, address, endpoints)
}

func service(protocol uint8, address string, endpoints []string) Service {
	s := Service{ServiceAddress: ServiceAddress{protocol, netip.MustParseAddrPort(address)}}
	for _, e := range endpoints {
		s.Endpoints = append(s.Endpoints, netip.MustParseAddrPort(e))
		s.Here = append(s.Here, netip.MustParseAddrPort(e).Addr())
	}
	return s
}

func TestServicesLeadToTheirEndpoints(t *testing.T) {
	n := newNetwork(t)
	one, two := startPod(t, n, "one"), startPod(t, n, "two")
	const address, empty = "10.199.7.250:443", "10.199.7.251:443"
	translation := newTranslation(t)
	translate(t, translation, tcp(address, "10.199.7.3:80"), tcp(empty))
	for what, answer := range map[string]struct{ got, want string }{
		"from another pod":  {one.say(address), "10.199.7.2"},
		"from itself":       {two.say(address), gatewayOfTest},
		"from the machine":  {ask(address), gatewayOfTest},
		"without endpoints": {one.say(empty), "dial tcp " + empty + ": connect: connection refused"},
		"machine, without":  {ask(empty), "dial tcp " + empty + ": connect: connection refused"},
		"another port":      {one.say("10.199.7.3:443"), "dial tcp 10.199.7.3:443: connect: connection refused"},
	} {
		if answer.got != answer.want {
			t.Errorf("%s: got %q, want %q", what, answer.got, answer.want)
		}
	}
	change(t, translation, []Service{tcp(empty, "10.199.7.3:80")}, tcp(address).ServiceAddress)
	if got := one.say(empty); got != "10.199.7.2" {
		t.Errorf("with an endpoint now: %s", got)
	}
	if got := one.say(address); !strings.Contains(got, "dial tcp") {
		t.Errorf("deleted: %s", got)
	}
}

func TestEveryEndpointIsReached(t *testing.T) {
	n := newNetwork(t)
	one := startPod(t, n, "one")
	startPod(t, n, "two")
	const address = "10.199.7.250:443"
	translation := newTranslation(t)
	translate(t, translation, tcp(address, "10.199.7.2:80", "10.199.7.3:80"))
	seen := map[string]int{}
	for range 64 { // all to one: once in 2^63 runs
		seen[one.say(address)]++
	}
	if len(seen) != 2 || seen[gatewayOfTest] == 0 || seen["10.199.7.2"] == 0 {
		t.Errorf("answers: %v, want some of itself and some of the other", seen)
	}
}

// TestManyServices: more than one message of elements can hold.
func TestManyServices(t *testing.T) {
	n := newNetwork(t)
	one := startPod(t, n, "one")
	var services []Service
	for i := range 3000 {
		address := netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, 10<<24|200<<16|uint32(i)))).String() + ":80"
		services = append(services, tcp(address, "10.199.7.2:80", "10.199.7.2:81"))
	}
	const address = "10.199.7.250:80"
	translation := newTranslation(t)
	translate(t, translation, append(services, tcp(address, "10.199.7.2:80"))...)
	if got := one.say(address); got != gatewayOfTest {
		t.Error(got)
	}
}

func TestDatagramsLeaveAnEndpointThatIsGone(t *testing.T) {
	newNetwork(t)
	first, second := listenUDP(t), listenUDP(t)
	const address = "10.199.7.250:53"
	translation := newTranslation(t)
	translate(t, translation, udp(address, first.LocalAddr().String()))
	client, err := net.Dial("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i, server := range []*net.UDPConn{first, second} {
		translate(t, translation, udp(address, server.LocalAddr().String()))
		if _, err := client.Write([]byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
		var got [1]byte
		if _, err := server.Read(got[:]); err != nil || got[0] != byte(i) {
			t.Errorf("server %d read %v: %v", i, got, err)
		}
	}
}

func listenUDP(t *testing.T) *net.UDPConn {
	t.Helper()
	server, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(gatewayOfTest)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	if err := server.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return server
}

// TestServicesWithoutADefaultRoute: the namespace of the tests has none, as a machine of an isolated site.
func TestServicesWithoutADefaultRoute(t *testing.T) {
	n := newNetwork(t)
	startPod(t, n, "one")
	const address, empty = "10.197.0.1:443", "10.197.255.254:443"
	translation := newTranslation(t)
	translate(t, translation, tcp(address, "10.199.7.2:80"), tcp(empty))
	if got := ask(address); got != gatewayOfTest {
		t.Errorf("got %q, want %q", got, gatewayOfTest)
	}
	if got := ask(empty); !strings.HasSuffix(got, "connection refused") {
		t.Errorf("without endpoints: %q", got)
	}
}
