package network

import (
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/networktest"
	"github.com/setpoint-io/setpoint/agent/net/network/nft"
)

// A server's port that Services claim: on this machine, on another one, and at an address of IPv6.
const (
	serverHere  = gatewayOfTest + ":6443"
	serverThere = "10.198.0.2:6443"
	serverSix   = "[fd00:198::2]:6443"
)

// serveBeside answers "server" at the ports of a neighbour and of this machine.
func serveBeside(t *testing.T) {
	t.Helper()
	there := networktest.NewNeighbour(t, "sptestserver")
	there.Address(netip.MustParsePrefix("10.198.0.1/24"), netip.MustParsePrefix("10.198.0.2/24"))
	there.Address(netip.MustParsePrefix("fd00:198::1/64"), netip.MustParsePrefix("fd00:198::2/64"))
	for _, address := range []string{serverThere, serverSix} {
		listener, err := networktest.Inside(there, func() (net.Listener, error) { return net.Listen("tcp", address) })
		check(t, err)
		answerAll(t, listener)
	}
	listener, err := net.Listen("tcp", serverHere)
	check(t, err)
	answerAll(t, listener)
}

func answerAll(t *testing.T, listener net.Listener) {
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("server"))
			conn.Close()
		}
	}()
}

// claims are Services that take the servers' addresses, in each way that rules know.
func claims() map[string][]Service {
	external := func(s Service) Service { s.External = true; return s }
	all := func(shape func(address, endpoint string) Service) []Service {
		return []Service{
			shape(serverHere, "10.199.7.2:80"), shape("0.0.0.0:6443", "10.199.7.2:80"), shape(serverThere, "10.199.7.2:80"),
			shape(serverSix, "[fd00:199::2]:80"), shape("[::]:6443", "[fd00:199::2]:80"),
		}
	}
	return map[string][]Service{
		"with an endpoint": all(func(a, e string) Service { return external(tcp(a, e)) }),
		"without":          all(func(a, _ string) Service { return external(tcp(a)) }),
		"silent":           all(func(a, _ string) Service { s := external(tcp(a)); s.Silent = true; return s }),
		"keeping the source": all(func(a, e string) Service {
			s := external(tcp(a, e))
			s.KeepsSource, s.Outside = true, s.Endpoints
			return s
		}),
		"for some sources only": all(func(a, e string) Service {
			s := external(tcp(a, e))
			s.Sources = []netip.Prefix{netip.PrefixFrom(s.Address.Addr(), s.Address.Addr().BitLen())}
			return s
		}),
	}
}

// mustBeTaken ends the test if the Services take nothing: it would show nothing.
func mustBeTaken(t *testing.T, how string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", serverThere, askTimeMax/4)
	if err != nil {
		return
	}
	defer conn.Close()
	if got, err := io.ReadAll(conn); string(got) == "server" {
		t.Fatalf("%s: the Service claims nothing: %v", how, err)
	}
}

func ownOf(protocol uint8, addresses ...string) (all []ServiceAddress) {
	for _, a := range addresses {
		all = append(all, ServiceAddress{protocol, netip.MustParseAddrPort(a)})
	}
	return all
}

func dualTranslation(t *testing.T) *Translation {
	t.Helper()
	translation := NewTranslation(TranslationConfig{Bridge: "sptest0"})
	translation.SetRanges(Ranges{
		Pods: netip.MustParsePrefix("10.199.0.0/16"), Services: netip.MustParsePrefix("10.197.0.0/16"),
		Pods6: netip.MustParsePrefix("fd00:199::/48"), Services6: netip.MustParsePrefix("fd00:197::/112"),
	})
	t.Cleanup(func() { translate(t, translation) })
	return translation
}

// TestServersAreReachedWhateverServicesClaim: at once, from each Replace on, and after a restart, when nobody knows the Services yet.
func TestServersAreReachedWhateverServicesClaim(t *testing.T) {
	n := newNetwork(t)
	startPod(t, n, "one")
	pod := startPod(t, n, "two")
	serveBeside(t)
	own := ownOf(unix.IPPROTO_TCP, "0.0.0.0:6443", "[::]:6443", serverThere, serverSix)
	reached := func(when string) {
		t.Helper()
		for _, address := range []string{serverHere, serverThere, serverSix} {
			if got := ask(address); got != "server" {
				t.Errorf("%s: %s from the machine: %q", when, address, got)
			}
		}
		if got := pod.say(serverHere); got != "server" {
			t.Errorf("%s: from a pod: %q", when, got)
		}
	}
	for how, services := range claims() {
		translation := dualTranslation(t)
		translate(t, translation, services...)
		mustBeTaken(t, how)
		check(t, translation.SetOwn(own))
		reached(how + ", at once")
		translate(t, translation, services...)
		reached(how + ", replaced")
		if damaged, err := translation.Damaged(); damaged || err != nil {
			t.Errorf("%s: damaged %v %v", how, damaged, err)
		}
		check(t, translation.SetOwn(nil))
		check(t, dualTranslation(t).SetOwn(own))
		reached(how + ", after a restart")
	}
}

// TestNothingIsTranslatedYet: on a new machine there is no table, and in a cluster of IPv4 never one of IPv6.
func TestNothingIsTranslatedYet(t *testing.T) {
	needRoot(t)
	if _, err := Uninstall("sptest0"); err != nil { // the tables of tests before
		t.Fatal(err)
	}
	check(t, dualTranslation(t).SetOwn(ownOf(unix.IPPROTO_TCP, serverThere, serverSix)))
}

// TestRulesOfAnOlderRelease has tables without the set: what they say of the cluster's own addresses is taken out of them, nothing else.
func TestRulesOfAnOlderRelease(t *testing.T) {
	n := newNetwork(t)
	startPod(t, n, "one")
	serveBeside(t)
	const other = "10.199.7.250:443"
	for how, services := range claims() {
		translation := dualTranslation(t)
		translate(t, translation, append(services, tcp(other, "10.199.7.2:80"))...)
		forgetOwnSet(t)
		mustBeTaken(t, how)
		check(t, dualTranslation(t).SetOwn(ownOf(unix.IPPROTO_TCP, "0.0.0.0:6443", "[::]:6443", serverThere, serverSix, serverHere)))
		for _, address := range []string{serverHere, serverThere, serverSix} {
			if got := ask(address); got != "server" {
				t.Errorf("%s: %s: %q", how, address, got)
			}
		}
		if got := ask(other); got != gatewayOfTest {
			t.Errorf("%s: another Service: %q", how, got)
		}
	}
}

// forgetOwnSet takes the set and its rules out of the tables.
func forgetOwnSet(t *testing.T) {
	t.Helper()
	conn, err := nft.Open()
	check(t, err)
	for _, f := range []family{inet, inet6} {
		chains, err := conn.ListChainsOfTableFamily(f.Tables)
		check(t, err)
		for _, chain := range chains {
			rules, err := conn.GetRules(chain.Table, chain)
			check(t, err)
			for _, rule := range rules {
				if chain.Table.Name == translationTable && readsSet(rule, ownSet) {
					check(t, conn.DelRule(rule))
				}
			}
		}
		conn.DelSet(f.ruleset(conn, translationTable).set(ownSet))
	}
	check(t, conn.Flush())
}

// TestDatagramsComeBackToTheirOwner: a flow that a Service has led astray ends when the address is known to be the cluster's own.
func TestDatagramsComeBackToTheirOwner(t *testing.T) {
	newNetwork(t)
	tunnel, thief := listenUDP(t), listenUDP(t)
	translation := newTranslation(t)
	address := tunnel.LocalAddr().String()
	own := []ServiceAddress{{unix.IPPROTO_UDP, netip.AddrPortFrom(netip.IPv4Unspecified(), netip.MustParseAddrPort(address).Port())}}
	told := newTranslation(t) // of the addresses, before there are Services
	check(t, told.SetOwn(own))
	translate(t, translation, udp(address, thief.LocalAddr().String()))
	client, err := net.Dial("udp", address)
	check(t, err)
	defer client.Close()
	for i, reader := range []*net.UDPConn{thief, tunnel} {
		_, err := client.Write([]byte{byte(i)})
		check(t, err)
		var got [1]byte
		if _, err := reader.Read(got[:]); err != nil || got[0] != byte(i) {
			t.Errorf("reader %d: %v %v", i, got, err)
		}
		check(t, told.SetOwn(own))
	}
}

func readsSet(rule *nftables.Rule, name string) bool {
	return slices.ContainsFunc(rule.Exprs, func(e expr.Any) bool {
		lookup, ok := e.(*expr.Lookup)
		return ok && lookup.SetName == name
	})
}
