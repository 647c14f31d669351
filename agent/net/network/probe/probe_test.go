package probe

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"

	"github.com/setpoint-io/setpoint/agent/net/ipfamily"
	"github.com/setpoint-io/setpoint/agent/net/network/link"
	"github.com/setpoint-io/setpoint/agent/net/network/networktest"
	"github.com/setpoint-io/setpoint/agent/net/network/nft"
	"github.com/setpoint-io/setpoint/internal/nodefirewall"
)

func TestMain(m *testing.M) { networktest.Main(m) }

const (
	bridgeOfTest = "probebridge"
	dnsOfTest    = "10.196.0.10"
)

var (
	place = Place{
		Bridge: bridgeOfTest, Gateway: netip.MustParseAddr("10.198.0.1"), Address: netip.MustParseAddr("10.198.0.254"),
		Hardware: net.HardwareAddr{0x0a, 0x58, 10, 198, 0, 254},
	}
	podsOfTest = netip.MustParsePrefix("10.198.0.0/16")
)

// TestWhatRulesBlockIsFound: each way, whoever forbids it, and it is whole again once the rules are gone.
func TestWhatRulesBlockIsFound(t *testing.T) {
	c := newNode(t, true)
	for name, of := range map[string]struct {
		rules     func(*nft.Conn)
		want      nodefirewall.Problem
		who, cure string
	}{
		"none": {rules: func(*nft.Conn) {}},
		"an input that drops": {
			rules: func(c *nft.Conn) {
				base(c, nftables.TableFamilyINet, "mine", "in", nftables.ChainHookInput, nftables.ChainPolicyDrop)
			},
			want: nodefirewall.Problem{Input: true}, who: "port 53/udp",
			cure: "nft insert rule inet mine in ip saddr 10.198.0.0/16 accept",
		},
		"a forwarding that drops": {
			rules: func(c *nft.Conn) {
				base(c, nftables.TableFamilyIPv4, "older", "FORWARD", nftables.ChainHookForward, nftables.ChainPolicyDrop)
			},
			want: nodefirewall.Problem{Forwarding: true}, who: "the chain FORWARD of the table ip older",
			cure: "nft insert rule ip older FORWARD ip saddr 10.198.0.0/16 accept && nft insert rule ip older FORWARD ip daddr 10.198.0.0/16 accept",
		},
		"rules that reject, as those of firewalld": {
			rules: func(c *nft.Conn) {
				for name, at := range map[string]*nftables.ChainHook{"INPUT": nftables.ChainHookInput, "FORWARD": nftables.ChainHookForward} {
					chain := base(c, nftables.TableFamilyINet, "firewalld", "filter_"+name, at, nftables.ChainPolicyAccept)
					c.AddRule(&nftables.Rule{Table: chain.Table, Chain: chain, Exprs: []expr.Any{&expr.Reject{Type: 2, Code: 3}}})
				}
			},
			want: nodefirewall.Problem{Input: true, Forwarding: true}, who: "firewalld",
			cure: "firewall-cmd --permanent --zone=trusted --add-source=10.198.0.0/16 && firewall-cmd --reload",
		},
	} {
		t.Run(name, func(t *testing.T) {
			change(t, of.rules)
			got := c.problem(t)
			if got.Input != of.want.Input || got.Forwarding != of.want.Forwarding || !strings.Contains(got.What, of.who) || got.Command != of.cure {
				t.Errorf("found %+v", got)
			}
			change(t, func(c *nft.Conn) { c.FlushRuleset() })
			if got := c.problem(t); got.Any() {
				t.Errorf("without rules: %+v", got)
			}
		})
	}
}

// TestADNSThatIsDownIsNoFirewall: the machine itself gets no answer either.
func TestADNSThatIsDownIsNoFirewall(t *testing.T) {
	c := newNode(t, false)
	change(t, func(c *nft.Conn) {
		base(c, nftables.TableFamilyINet, "mine", "in", nftables.ChainHookInput, nftables.ChainPolicyDrop)
	})
	found, err := c.probe(t.Context())
	if want := (finding{forwarding: passes}); err != nil || found != want {
		t.Errorf("found %+v, %v", found, err)
	}
}

// TestABridgeThatIsDownIsNoFirewall.
func TestABridgeThatIsDownIsNoFirewall(t *testing.T) {
	c := newNode(t, true)
	bridge, err := netlink.LinkByName(bridgeOfTest)
	check(t, errors.Join(err, netlink.LinkSetDown(bridge)))
	if found, err := c.probe(t.Context()); !errors.Is(err, errNoBridge) || found != (finding{}) {
		t.Errorf("found %+v, %v", found, err)
	}
}

// TestNothingIsLeft: no interface, address, route or namespace, of probes that succeed, that fail, and that were cut off.
func TestNothingIsLeft(t *testing.T) {
	c := newNode(t, true)
	before := machine(t)
	abandoned, err := openPod(place)
	check(t, err)
	_, err = openOutside() // nobody closes this one
	check(t, err)
	for range 3 {
		if found, err := c.probe(t.Context()); err != nil || found.input != passes || found.forwarding != passes {
			t.Fatalf("found %+v, %v", found, err)
		}
	}
	abandoned.close()
	change(t, func(c *nft.Conn) {
		base(c, nftables.TableFamilyINet, "mine", "in", nftables.ChainHookInput, nftables.ChainPolicyDrop)
	})
	_, err = c.probe(t.Context())
	check(t, err)
	elsewhere := *c
	elsewhere.Lend = func() (Place, func(), error) { return Place{Bridge: "none", Address: place.Address}, func() {}, nil }
	if _, err := elsewhere.probe(t.Context()); err == nil {
		t.Error("it probes without a bridge")
	}
	if c.lent != 0 {
		t.Errorf("%d places are not given back", c.lent)
	}
	// One namespace is held by the room that nobody has closed.
	after := machine(t)
	more := len(after) - len(before)
	before, after = slices.DeleteFunc(before, isNamespace), slices.DeleteFunc(after, isNamespace)
	if more != 1 || !slices.Equal(before, after) {
		t.Errorf("%d more, before:\n%s\nafter:\n%s", more, strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

// machine lists interfaces with their addresses and routes, and the namespaces that this process holds.
func machine(t *testing.T) (all []string) {
	t.Helper()
	links, err := link.List()
	check(t, err)
	for _, l := range links {
		all = append(all, l.Attrs().Name)
	}
	addresses, err := link.Addresses(nil, netlink.FAMILY_ALL)
	check(t, err)
	for _, a := range addresses {
		all = append(all, a.String())
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_ALL)
	check(t, err)
	for _, r := range routes {
		all = append(all, r.String())
	}
	return append(all, namespaces(t)...)
}

func isNamespace(text string) bool { return strings.HasPrefix(text, "net:[") }

// namespaces are those of threads other than the process's, and those of open files.
func namespaces(t *testing.T) (held []string) {
	t.Helper()
	own, err := os.Readlink("/proc/self/ns/net")
	check(t, err)
	for _, pattern := range []string{"/proc/self/task/*/ns/net", "/proc/self/fd/*"} {
		paths, err := filepath.Glob(pattern)
		check(t, err)
		for _, path := range paths {
			to, err := os.Readlink(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			if isNamespace(to) && to != own {
				held = append(held, to)
			}
		}
	}
	slices.Sort(held)
	return held
}

// node is what a probe needs, with a DNS that answers, or not.
type node struct {
	Config
	lent int
}

func newNode(t *testing.T, answers bool) *node {
	t.Helper()
	if missing := networktest.Missing(); missing != "" {
		t.Skip(missing)
	}
	check(t, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0))
	attributes := netlink.NewLinkAttrs()
	attributes.Name = bridgeOfTest
	bridge := &netlink.Bridge{LinkAttrs: attributes}
	check(t, netlink.LinkAdd(bridge))
	t.Cleanup(func() {
		change(t, func(c *nft.Conn) { c.FlushRuleset() })
		_ = netlink.LinkDel(bridge)
	})
	check(t, errors.Join(netlink.AddrAdd(bridge, address("10.198.0.1/24")), netlink.LinkSetUp(bridge)))
	loopback, err := netlink.LinkByName("lo")
	check(t, err)
	check(t, netlink.AddrReplace(loopback, address(dnsOfTest+"/32")))
	t.Cleanup(func() { _ = netlink.AddrDel(loopback, address(dnsOfTest+"/32")) })
	at := netip.AddrPortFrom(netip.MustParseAddr(dnsOfTest), portOfDNS)
	if answers {
		serveDNS(t, at)
	}
	n := &node{Config: Config{Domain: "cluster.local", Targets: func() []Target { return []Target{{"udp", at}, {"tcp", at}} }}}
	n.Lend = func() (Place, func(), error) {
		n.lent++
		return place, func() { n.lent-- }, nil
	}
	return n
}

func (n *node) problem(t *testing.T) nodefirewall.Problem {
	t.Helper()
	found, err := n.probe(t.Context())
	check(t, err)
	return problemOf(found, readRules(), podsOfTest)
}

// serveDNS sends each question back, which has the number of its answer, and takes connections.
func serveDNS(t *testing.T, at netip.AddrPort) {
	t.Helper()
	conn, err := net.ListenPacket("udp", at.String())
	check(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buffer := make([]byte, answerBytesMax)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(buffer[:n], from)
		}
	}()
	listener, err := net.Listen("tcp", at.String())
	check(t, err)
	t.Cleanup(func() { _ = listener.Close() })
}

func address(text string) *netlink.Addr {
	return &netlink.Addr{IPNet: link.IPNet(netip.MustParsePrefix(text))}
}

// base makes a chain at a hook. What the machine sends itself passes, as with all firewalls.
func base(
	c *nft.Conn, family nftables.TableFamily, table, name string, hook *nftables.ChainHook, policy nftables.ChainPolicy,
) *nftables.Chain {
	chain := c.AddChain(&nftables.Chain{
		Table: c.AddTable(&nftables.Table{Family: family, Name: table}), Name: name, Type: nftables.ChainTypeFilter,
		Hooknum: hook, Priority: nftables.ChainPriorityFilter, Policy: &policy,
	})
	c.AddRule(&nftables.Rule{Table: chain.Table, Chain: chain, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte("lo\x00")},
		&expr.Verdict{Kind: expr.VerdictAccept},
	}})
	established := append(ipfamily.InState(expr.CtStateBitESTABLISHED), &expr.Verdict{Kind: expr.VerdictAccept})
	c.AddRule(&nftables.Rule{Table: chain.Table, Chain: chain, Exprs: established})
	return chain
}

func change(t *testing.T, do func(*nft.Conn)) {
	t.Helper()
	conn, err := nft.Open()
	check(t, err)
	do(conn)
	check(t, conn.Flush())
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
