package plan

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	tcp, udp, sctp = 6, 17, 132
	serve          = "serve-%d-%s"
)

// newWorld has the namespaces x, y and z with the pods a, b and c each, which serve 80 and 81 by every protocol and name
// these ports as upstream's suite does.
func newWorld(policies ...*networkingv1.NetworkPolicy) World {
	w := World{Policies: policies, Namespaces: map[string]labels.Set{}}
	for i, namespace := range []string{"x", "y", "z"} {
		w.Namespaces[namespace] = labels.Set{"ns": namespace, corev1.LabelMetadataName: namespace}
		for j, name := range []string{"a", "b", "c"} {
			second := netip.MustParseAddr(fmt.Sprintf("fd42::%d:%d", i, j+2))
			pod := &Pod{Namespace: namespace, Labels: labels.Set{"pod": name}, Here: true,
				Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, 42, byte(i), byte(j + 2)}), second}}
			for protocol, text := range map[uint8]string{tcp: "tcp", udp: "udp", sctp: "sctp"} {
				for _, number := range []uint16{80, 81} {
					pod.Ports = append(pod.Ports, NamedPort{fmt.Sprintf(serve, number, text), protocol, number})
				}
			}
			w.Pods = append(w.Pods, pod)
		}
	}
	return w
}

// name is "x/a".
func (p *Pod) name() string { return p.Namespace + "/" + p.Labels["pod"] }

// Builders of policies, which say no more than a scenario needs.
type (
	peer = networkingv1.NetworkPolicyPeer
	port = networkingv1.NetworkPolicyPort
)

func policy(namespace, selects string, change ...func(*networkingv1.NetworkPolicySpec)) *networkingv1.NetworkPolicy {
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
	p.Spec.PodSelector = *labelled("pod", selects)
	for _, c := range change {
		c(&p.Spec)
	}
	return p
}

// labelled is a selector of one label's values "v" or "v,w", of "!v", or of everything.
func labelled(key, values string) *metav1.LabelSelector {
	not, isNot := strings.CutPrefix(values, "!")
	switch {
	case values == "":
		return &metav1.LabelSelector{}
	case isNot:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: strings.Split(not, ",")}}}
	case strings.Contains(values, ","):
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpIn, Values: strings.Split(values, ",")}}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: values}}
}

func ingress(from []peer, ports ...port) func(*networkingv1.NetworkPolicySpec) {
	return func(s *networkingv1.NetworkPolicySpec) {
		denyIngress(s)
		s.Ingress = append(s.Ingress, networkingv1.NetworkPolicyIngressRule{From: from, Ports: ports})
	}
}

func egress(to []peer, ports ...port) func(*networkingv1.NetworkPolicySpec) {
	return func(s *networkingv1.NetworkPolicySpec) {
		denyEgress(s)
		s.Egress = append(s.Egress, networkingv1.NetworkPolicyEgressRule{To: to, Ports: ports})
	}
}

func denyIngress(s *networkingv1.NetworkPolicySpec) {
	s.PolicyTypes = append(s.PolicyTypes, networkingv1.PolicyTypeIngress)
}

func denyEgress(s *networkingv1.NetworkPolicySpec) {
	s.PolicyTypes = append(s.PolicyTypes, networkingv1.PolicyTypeEgress)
}

func pods(values string) peer       { return peer{PodSelector: labelled("pod", values)} }
func namespaces(values string) peer { return peer{NamespaceSelector: labelled("ns", values)} }
func both(ns, pod string) peer {
	return peer{NamespaceSelector: labelled("ns", ns), PodSelector: labelled("pod", pod)}
}

func block(cidr string, except ...string) peer {
	return peer{IPBlock: &networkingv1.IPBlock{CIDR: cidr, Except: except}}
}

func on(protocol corev1.Protocol, ports ...any) port {
	p := port{Protocol: &protocol}
	for i, number := range ports {
		switch n := number.(type) {
		case string:
			of := intstr.FromString(n)
			p.Port = &of
		case int:
			if i == 0 {
				of := intstr.FromInt32(int32(n))
				p.Port = &of
			} else {
				end := int32(n)
				p.EndPort = &end
			}
		}
	}
	return p
}

// scenario is one of upstream's netpol suite. denied lists what does not pass: "from -> to", with "*" for any pod and an optional
// port; all else does.
type scenario struct {
	name     string
	policies []*networkingv1.NetworkPolicy
	denied   string
	allowed  string // of what denied says
}

var scenarios = []scenario{
	{"no policy", nil, "", ""},
	{"default-deny-ingress", list(policy("x", "", denyIngress)), "* -> x/*", ""},
	{"default-deny-all", list(policy("x", "", denyIngress, denyEgress)), "* -> x/*; x/* -> *", ""},
	{"pods of the server's namespace, by PodSelector", list(policy("x", "a", ingress([]peer{pods("b")}))), "* -> x/a", "x/b -> x/a"},
	{"ingress traffic for a target", list(policy("x", "", denyIngress), policy("x", "a", ingress(nil))), "* -> x/*", "* -> x/a"},
	{"pods of all namespaces", list(policy("x", "a", ingress([]peer{namespaces("")}))), "", ""},
	{"a different namespace, by NamespaceSelector", list(policy("x", "a", ingress([]peer{namespaces("y")}))), "* -> x/a", "y/* -> x/a"},
	{"PodSelector with MatchExpressions", list(policy("x", "a", ingress([]peer{pods("b,c")}))), "* -> x/a", "x/b -> x/a; x/c -> x/a"},
	{"NamespaceSelector with MatchExpressions", list(policy("x", "a", ingress([]peer{namespaces("y,z")}))), "* -> x/a", "y/* -> x/a; z/* -> x/a"},
	{"PodSelector or NamespaceSelector", list(policy("x", "a", ingress([]peer{namespaces("!x"), pods("b")}))), "* -> x/a", "x/b -> x/a; y/* -> x/a; z/* -> x/a"},
	{"PodSelector and NamespaceSelector", list(policy("x", "a", ingress([]peer{both("!x", "b")}))), "* -> x/a", "y/b -> x/a; z/b -> x/a"},
	{"several PodSelectors and NamespaceSelectors", list(policy("x", "a", ingress([]peer{both("y,z", "b,c"), both("x", "b,c")}))), "* -> x/a", "*/b -> x/a; */c -> x/a"},
	{"any of two rules", list(policy("x", "", ingress([]peer{pods("b")}), ingress([]peer{pods("c")}))), "* -> x/*", "x/b -> x/*; x/c -> x/*"},
	{"a pod of another namespace, by both selectors", list(policy("x", "a", ingress([]peer{both("y", "a")}))), "* -> x/a", "y/a -> x/a"},
	{"ports", list(policy("x", "a", ingress([]peer{namespaces("y")}, on("TCP", 81)))), "* -> x/a", "y/* -> x/a tcp/81"},
	{"stacked policies", list(policy("x", "a", ingress([]peer{namespaces("y")}, on("TCP", 80))), policy("x", "a", ingress([]peer{namespaces("y")}, on("TCP", 81)))), "* -> x/a", "y/* -> x/a tcp/80; y/* -> x/a tcp/81"},
	{"allow-all", list(policy("x", "", ingress(nil))), "", ""},
	{"an empty rule beats a deny", list(policy("x", "", denyIngress), policy("x", "", ingress(nil))), "", ""},
	{"one named port", list(policy("x", "", ingress(nil, on("TCP", "serve-80-tcp")))), "* -> x/*", "* -> x/* tcp/80"},
	{"one named port from a namespace", list(policy("x", "", ingress([]peer{namespaces("y")}, on("TCP", "serve-81-tcp")))), "* -> x/*", "y/* -> x/* tcp/81"},
	{"egress to one named port", list(policy("x", "a", egress(nil, on("TCP", "serve-80-tcp")))), "x/a -> *", "x/a -> * tcp/80"},
	{"egress to one named port of a pod", list(policy("x", "a", egress([]peer{both("y", "b")}, on("UDP", "serve-81-udp")))), "x/a -> *", "x/a -> y/b udp/81"},
	{"egress to a named port in a block", list(policy("x", "a", egress([]peer{block("10.42.1.0/24")}, on("TCP", "serve-80-tcp")))), "x/a -> *", "x/a -> y/* tcp/80"},
	{"a named port from a block", list(policy("x", "a", ingress([]peer{block("10.42.1.0/24")}, on("TCP", "serve-80-tcp")))), "* -> x/a", "y/* -> x/a tcp/80"},
	{"a name that no port has", list(policy("x", "a", ingress(nil, on("TCP", "none")))), "* -> x/a", ""},
	{"a name of another protocol", list(policy("x", "a", ingress(nil, on("UDP", "serve-80-tcp")))), "* -> x/a", ""},
	{"from other namespaces nobody", list(policy("x", "", ingress([]peer{pods("")}))), "* -> x/*", "x/* -> x/*"},
	{"egress by PodSelector", list(policy("x", "a", denyEgress)), "x/a -> *", ""},
	{"egress of a namespace", list(policy("x", "", denyEgress)), "x/* -> *", ""},
	{"ingress and egress together", list(policy("x", "a", ingress([]peer{namespaces("y")}, on("TCP", 80)), egress([]peer{namespaces("z")}, on("UDP", 80)))), "* -> x/a; x/a -> *", "y/* -> x/a tcp/80; x/a -> z/* udp/80"},
	{"egress denied although ingress is allowed", list(policy("x", "a", egress([]peer{namespaces("y")})), policy("z", "a", ingress(nil))), "x/a -> *", "x/a -> y/*"},
	{"egress to a pod of another namespace", list(policy("x", "a", egress([]peer{both("y", "a")}))), "x/a -> *", "x/a -> y/a"},
	{"any port of a protocol", list(policy("x", "a", ingress(nil, on("UDP")))), "* -> x/a", "* -> x/a udp"},
	{"ingress: allow-all beats the narrow", list(policy("x", "a", ingress([]peer{pods("b")}, on("TCP", 80))), policy("x", "a", ingress(nil))), "", ""},
	{"egress: allow-all beats the narrow", list(policy("x", "a", egress([]peer{pods("b")}, on("TCP", 80))), policy("x", "a", egress(nil))), "", ""},
	{"egress to a block", list(policy("x", "a", egress([]peer{block("10.42.1.0/30")}))), "x/a -> *", "x/a -> y/a; x/a -> y/b"},
	{"egress to a block with an exception", list(policy("x", "a", egress([]peer{block("10.42.1.0/24", "10.42.1.4/32")}))), "x/a -> *", "x/a -> y/a; x/a -> y/b"},
	{"an address that is excepted and allowed", list(policy("x", "a", egress([]peer{block("10.42.1.0/24", "10.42.1.4/32")})), policy("x", "a", egress([]peer{block("10.42.1.4/32")}))), "x/a -> *", "x/a -> y/*"},
	{"a block of IPv6", list(policy("x", "a", ingress([]peer{block("::/0")}))), "* -> x/a", ""},
	{"a block of IPv6 beside pods", list(policy("x", "a", ingress([]peer{block("::/0"), pods("b")}))), "* -> x/a", "x/b -> x/a"},
	{"ingress and egress independently", list(policy("x", "a", ingress([]peer{pods("b")})), policy("x", "b", egress([]peer{pods("a")}))), "* -> x/a; x/b -> *", "x/b -> x/a"},
	{"SCTP is not TCP", list(policy("x", "a", ingress(nil, on("SCTP", 80)))), "* -> x/a", "* -> x/a sctp/80"},
	{"UDP is not TCP", list(policy("x", "a", ingress(nil, on("UDP", 80)))), "* -> x/a", "* -> x/a udp/80"},
	{"a range of ports", list(policy("x", "a", ingress(nil, on("TCP", 79, 80)))), "* -> x/a", "* -> x/a tcp/80"},
	{"the default label of a namespace", list(policy("x", "a", ingress([]peer{{NamespaceSelector: labelled(corev1.LabelMetadataName, "y")}}))), "* -> x/a", "y/* -> x/a"},
	{"all but by the default label", list(policy("x", "a", ingress([]peer{{NamespaceSelector: labelled(corev1.LabelMetadataName, "!y")}}))), "* -> x/a", "x/* -> x/a; z/* -> x/a"},
	{"a selector that selects nobody", list(policy("x", "nobody", denyIngress, denyEgress)), "", ""},
	{"ports without a protocol are TCP", list(policy("x", "a", ingress(nil, port{Port: on("", 80).Port}))), "* -> x/a", "* -> x/a tcp/80"},
}

func list(policies ...*networkingv1.NetworkPolicy) []*networkingv1.NetworkPolicy { return policies }

// listed reports whether one of the entries "from -> to [protocol[/port]]" speaks of a packet.
func listed(entries string, from, to *Pod, protocol string, number uint16) bool {
	for entry := range strings.SplitSeq(entries, ";") {
		words := strings.Fields(entry)
		if len(words) < 3 || !isPod(words[0], from) || !isPod(words[2], to) {
			continue
		}
		if len(words) == 3 || words[3] == protocol || words[3] == fmt.Sprintf("%s/%d", protocol, number) {
			return true
		}
	}
	return false
}

func isPod(pattern string, p *Pod) bool {
	namespace, own, _ := strings.Cut(pattern, "/")
	return (namespace == "*" || namespace == p.Namespace) && (own == "*" || own == "" || own == p.Labels["pod"])
}

func TestScenariosOfUpstream(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld(s.policies...)
			table := Of(w)
			everyPacket(w, func(from, to *Pod, protocol string, packet Packet) {
				want := from == to || !listed(s.denied, from, to, protocol, packet.Port) || listed(s.allowed, from, to, protocol, packet.Port)
				if got := table.Allows(packet); got != want {
					t.Errorf("%s -> %s %s/%d: passes %v, want %v", from.name(), to.name(), protocol, packet.Port, got, want)
				}
				if second := oracle(w, from, to, 0, packet.Protocol, packet.Port); second != want {
					t.Errorf("%s -> %s %s/%d: the oracle says %v, want %v", from.name(), to.name(), protocol, packet.Port, second, want)
				}
			})
			checkNames(t, table)
		})
	}
}

func everyPacket(w World, check func(from, to *Pod, protocol string, packet Packet)) {
	for _, from := range w.Pods {
		for _, to := range w.Pods {
			for protocol, name := range map[uint8]string{tcp: "tcp", udp: "udp", sctp: "sctp"} {
				for _, number := range []uint16{80, 81} {
					check(from, to, name, Packet{from.Addresses[0], to.Addresses[0], protocol, number})
				}
			}
		}
	}
}

// checkNames: every set and chain that is named exists, and every one that exists is named.
func checkNames(t *testing.T, table *Table) {
	t.Helper()
	named := map[string]bool{}
	for _, m := range []map[netip.Addr]string{table.Ingress, table.Egress} {
		for _, chain := range m {
			named[chain] = true
			if _, ok := table.Chains[chain]; !ok {
				t.Errorf("no chain %s", chain)
			}
		}
	}
	for _, rules := range table.Chains {
		for _, r := range rules {
			named[r.Pods], named[r.Blocks], named[r.Ports] = true, true, true
		}
	}
	for _, name := range append(append(append(names(table.Chains), names(table.Pods)...), names(table.Blocks)...), names(table.Ports)...) {
		if !named[name] {
			t.Errorf("nobody names %s", name)
		}
	}
}

func names[T any](m map[string]T) (all []string) {
	for name := range m {
		all = append(all, name)
	}
	return all
}
