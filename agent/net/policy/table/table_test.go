package table

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/agent/net/network/networktest"
	"github.com/setpoint-io/setpoint/agent/net/policy/plan"
)

// newTable is gone with the test: the network namespace is that of all tests.
func newTable(t testing.TB) *Table {
	t.Helper()
	needRoot(t)
	table := New("test")
	t.Cleanup(func() {
		if numbers, err := table.inet.numbers(); err != nil || len(numbers) != 1 {
			t.Errorf("tables %v, %v", numbers, err)
		}
		if err := errors.Join(table.Clear(), table.Clear()); err != nil { // the second finds nothing
			t.Error(err)
		}
	})
	return table
}

func apply(t testing.TB, table *Table, w plan.World) *plan.Table {
	t.Helper()
	planned := plan.Of(w)
	if err := table.Apply(planned); err != nil {
		t.Fatal(err)
	}
	return planned
}

// world has a pod for each address, named by its last part; all are in one namespace and on this node.
func world(addresses []string, policies ...networkingv1.NetworkPolicySpec) plan.World {
	w := plan.World{Namespaces: map[string]labels.Set{"n": {"ns": "n"}}}
	for _, text := range addresses {
		name := text[strings.LastIndex(text, ".")+1:]
		w.Pods = append(w.Pods, &plan.Pod{Namespace: "n", Labels: labels.Set{"pod": name}, Addresses: []netip.Addr{netip.MustParseAddr(text), secondOf(text)}, Here: true,
			Ports: []plan.NamedPort{{Name: "web", Protocol: 6, Number: servePort}}})
	}
	for _, spec := range policies {
		w.Policies = append(w.Policies, &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "n"}, Spec: spec})
	}
	return w
}

// secondOf is the address of IPv6 beside one of IPv4.
func secondOf(text string) netip.Addr {
	bytes := netip.MustParseAddr(text).As4()
	return netip.MustParseAddr(fmt.Sprintf("fd09::%x:%x", bytes[2], bytes[3]))
}

func selector(pod string) *metav1.LabelSelector {
	if pod == "" {
		return &metav1.LabelSelector{}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"pod": pod}}
}

func peers(pod string) []networkingv1.NetworkPolicyPeer {
	return []networkingv1.NetworkPolicyPeer{{PodSelector: selector(pod)}}
}

func blocks(cidr string, except ...string) []networkingv1.NetworkPolicyPeer {
	return []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: cidr, Except: except}}}
}

func ports(protocol corev1.Protocol, port intstr.IntOrString) []networkingv1.NetworkPolicyPort {
	return []networkingv1.NetworkPolicyPort{{Protocol: &protocol, Port: &port}}
}

func ingress(pod string, rules ...networkingv1.NetworkPolicyIngressRule) networkingv1.NetworkPolicySpec {
	return networkingv1.NetworkPolicySpec{PodSelector: *selector(pod), PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, Ingress: rules}
}

func egress(pod string, rules ...networkingv1.NetworkPolicyEgressRule) networkingv1.NetworkPolicySpec {
	return networkingv1.NetworkPolicySpec{PodSelector: *selector(pod), PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}, Egress: rules}
}

type (
	receive = networkingv1.NetworkPolicyIngressRule
	send    = networkingv1.NetworkPolicyEgressRule
)

var threePods = []string{"10.9.0.2", "10.9.0.3", "10.9.0.4"}

// TestPacketsObeyThePlan: each scenario is a change of the one before, and real packets do what the plan says.
func TestPacketsObeyThePlan(t *testing.T) {
	table := newTable(t)
	var all []*testPod
	for _, address := range threePods {
		all = append(all, newPod(t, address))
	}
	web := intstr.FromString("web")
	for _, s := range []struct {
		name     string
		policies []networkingv1.NetworkPolicySpec
		passes   int // of the 24 packets between different pods, so that a plan that allows all is noticed
	}{
		{"no policy", nil, 24},
		{"deny ingress", []networkingv1.NetworkPolicySpec{ingress("2")}, 16},
		{"deny all", []networkingv1.NetworkPolicySpec{ingress(""), egress("")}, 0},
		{"ingress from a pod", []networkingv1.NetworkPolicySpec{ingress("2", receive{From: peers("3")})}, 20},
		{"egress to a pod", []networkingv1.NetworkPolicySpec{egress("2", send{To: peers("3")})}, 20},
		{"by TCP only", []networkingv1.NetworkPolicySpec{ingress("2", receive{Ports: ports("TCP", intstr.FromInt32(servePort))})}, 20},
		{"by UDP only", []networkingv1.NetworkPolicySpec{ingress("2", receive{Ports: ports("UDP", intstr.FromInt32(servePort))})}, 20},
		{"another port", []networkingv1.NetworkPolicySpec{ingress("2", receive{Ports: ports("TCP", intstr.FromInt32(81))})}, 16},
		{"a named port", []networkingv1.NetworkPolicySpec{ingress("2", receive{Ports: ports("TCP", web)})}, 20},
		{"egress to a named port", []networkingv1.NetworkPolicySpec{egress("2", send{Ports: ports("TCP", web)})}, 20},
		{"from a block", []networkingv1.NetworkPolicySpec{ingress("2", receive{From: blocks("10.9.0.0/24", "10.9.0.4/32")})}, 18},
		{"from a block of IPv6", []networkingv1.NetworkPolicySpec{ingress("2", receive{From: blocks("fd09::/64", "fd09::3/128")})}, 18},
		{"to a block up to the end", []networkingv1.NetworkPolicySpec{egress("2", send{To: blocks("0.0.0.0/0", "10.9.0.3/32")})}, 18},
		{"to both families", []networkingv1.NetworkPolicySpec{egress("2", send{To: append(blocks("0.0.0.0/0"), blocks("::/0", "fd09::4/128")...)})}, 22},
		{"both ends", []networkingv1.NetworkPolicySpec{ingress("2", receive{From: peers("3")}), egress("3", send{To: peers("4")})}, 16},
		{"no policy again", nil, 24},
	} {
		if passed := probe(t, s.name, all, apply(t, table, world(threePods, s.policies...))); passed != s.passes {
			t.Errorf("%s: %d packets pass, want %d", s.name, passed, s.passes)
		}
	}
}

// probe sends a packet of each protocol from each pod to each, and counts those that reach another one.
func probe(t *testing.T, scenario string, all []*testPod, planned *plan.Table) int {
	var passed atomic.Int64
	var probes sync.WaitGroup
	for _, from := range all {
		for _, to := range all {
			for network, protocol := range map[string]uint8{"tcp4": 6, "udp4": 17, "tcp6": 6, "udp6": 17} {
				probes.Go(func() {
					sender, receiver := from.in(network), to.in(network)
					want := planned.Allows(plan.Packet{From: sender, To: receiver, Protocol: protocol, Port: servePort})
					got := from.reaches(network, receiver, want)
					if got != want {
						t.Errorf("%s: %s from %s to %s: passes %v, want %v", scenario, network, sender, receiver, got, want)
					}
					if got && from != to {
						passed.Add(1)
					}
				})
			}
		}
	}
	probes.Wait()
	return int(passed.Load())
}

// TestConnectionsEnd: what a policy no longer allows ends with the next packet in any direction, and goes on once it is allowed.
func TestConnectionsEnd(t *testing.T) {
	table := newTable(t)
	client, server := newPod(t, "10.9.0.2"), newPod(t, "10.9.0.3")
	pods := threePods[:2]
	for name, policy := range map[string]networkingv1.NetworkPolicySpec{
		"ingress of the server": ingress("3"), "egress of the client": egress("2"), "another peer": ingress("3", receive{From: peers("4")}),
	} {
		apply(t, table, world(pods))
		for _, network := range []string{"tcp4", "udp4", "tcp6", "udp6"} {
			conn := client.open(network, server.in(network), passTime)
			if conn == nil || !echoes(conn, passTime) {
				t.Fatalf("%s: no connection by %s", name, network)
			}
			apply(t, table, world(pods, policy))
			if heard := server.heard.Load(); echoes(conn, lostTime) || server.heard.Load() != heard {
				t.Errorf("%s: a connection by %s goes on", name, network)
			}
			apply(t, table, world(pods))
			if !echoes(conn, passTime) {
				t.Errorf("%s: a connection by %s was not taken up again", name, network)
			}
		}
	}
}

// TestNoPacketPassesWhileTheTableIsReplaced: a client sends without a pause while agents come and go.
func TestNoPacketPassesWhileTheTableIsReplaced(t *testing.T) {
	table := newTable(t)
	client, server := newPod(t, "10.9.0.2"), newPod(t, "10.9.0.3")
	forbidden := plan.Of(world(threePods, ingress("3", receive{From: peers("4")})))
	other := plan.Of(world(threePods, ingress("3", receive{From: peers("4")}), egress("4"), ingress("3", receive{From: blocks("192.0.2.0/24")})))
	if err := table.Apply(forbidden); err != nil {
		t.Fatal(err)
	}
	conn := client.open("udp4", server.address, passTime)
	stop, sent := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				sent <- n
				return
			default:
				if _, err := conn.Write([]byte("x")); err == nil {
					n++
				}
			}
		}
	}()
	for i := range 25 {
		next := []*plan.Table{forbidden, other}[i%2]
		if i%5 == 0 {
			table = New("test") // a restarted agent, which knows nothing
		}
		if err := table.Apply(next); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	if n, heard := <-sent, server.heard.Load(); n == 0 || heard != 0 {
		t.Errorf("%d of %d packets passed", heard, n)
	}
}

// TestChangesLeadToTheSameTable: whatever the way, the kernel has what a fresh table would have.
func TestChangesLeadToTheSameTable(t *testing.T) {
	newTable(t)
	worlds := []plan.World{
		world(threePods),
		world(threePods, ingress("2", receive{From: peers("3")})),
		world(threePods[:2], ingress("2", receive{From: peers("3")}), egress("3")),
		world(append([]string{"10.9.1.9"}, threePods...), ingress("", receive{From: peers("9")}, receive{From: blocks("10.0.0.0/8", "10.9.0.0/16")}), egress("4")),
		world(threePods, ingress("", receive{From: blocks("0.0.0.0/0"), Ports: ports("TCP", intstr.FromString("web"))}), egress("2", send{To: peers("")})),
		world(nil),
	}
	for i := range worlds {
		for j := range worlds {
			table := New("test")
			apply(t, table, worlds[i])
			apply(t, table, worlds[j])
			if table.inet.current == nil {
				t.Fatal("the change was refused")
			}
			changed := dump(t, table)
			fresh := New("test")
			apply(t, fresh, worlds[j])
			networktest.Listable(t)
			if diff := cmp.Diff(dump(t, fresh), changed); diff != "" {
				t.Errorf("from %d to %d: - fresh, + changed:\n%s", i, j, diff)
			}
		}
	}
}

// dump is what the kernel has.
func dump(t *testing.T, table *Table) map[string][]string {
	t.Helper()
	conn, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	own := &nftables.Table{Family: nftables.TableFamilyIPv4, Name: table.inet.name()}
	all := map[string][]string{}
	sets, err := conn.GetSets(own)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range sets {
		elements, err := conn.GetSetElements(set)
		if err != nil {
			t.Fatal(err)
		}
		all[set.Name] = nil
		for _, e := range elements {
			text := fmt.Sprintf("%x %v", e.Key, e.IntervalEnd)
			if e.VerdictData != nil {
				text += " " + e.VerdictData.Chain
			}
			all[set.Name] = append(all[set.Name], text)
		}
		slices.Sort(all[set.Name])
	}
	chains, err := conn.ListChainsOfTableFamily(nftables.TableFamilyIPv4)
	if err != nil {
		t.Fatal(err)
	}
	for _, chain := range chains {
		if chain.Table.Name != table.inet.name() {
			continue
		}
		rules, err := conn.GetRules(own, chain)
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range rules {
			all[chain.Name] = append(all[chain.Name], fmt.Sprint(len(rule.Exprs)))
		}
	}
	return all
}

func TestATableThatSomebodyRemovedComesBack(t *testing.T) {
	table := newTable(t)
	w := world(threePods, ingress("2", receive{From: peers("3")}))
	apply(t, table, w)
	if intact, err := table.Intact(); !intact || err != nil {
		t.Fatalf("intact %v, %v", intact, err)
	}
	before := dump(t, table)
	conn, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	conn.DelTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: table.inet.name()})
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	if intact, err := table.Intact(); intact || err != nil {
		t.Errorf("removed, and intact %v, %v", intact, err)
	}
	apply(t, table, w)
	if diff := cmp.Diff(before, dump(t, table)); diff != "" {
		t.Error(diff)
	}
}

// BenchmarkOneOf10000Peers: a pod that 10,000 rules' peers have comes and goes, from the plan to the kernel.
func BenchmarkOneOf10000Peers(b *testing.B) {
	table := newTable(b)
	var addresses []string
	for i := range 10_001 {
		addresses = append(addresses, fmt.Sprintf("10.9.%d.%d", i/250, i%250+2))
	}
	spec := []networkingv1.NetworkPolicySpec{ingress("2", receive{From: peers("")}, receive{From: blocks("10.0.0.0/8")})}
	with, without := world(addresses, spec...), world(addresses[:10_000], spec...)
	start := time.Now()
	apply(b, table, with)
	b.Logf("all at once: %v", time.Since(start))
	for i := 0; b.Loop(); i++ {
		apply(b, table, []plan.World{without, with}[i%2])
	}
}
