package loadbalancer

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/reserved"
	"github.com/setpoint-io/setpoint/internal/simulatednode"
)

type change = func(*corev1.Service)

// balanced is a Service that is as many seconds old as its age says, with port 80.
func balanced(name string, age int, changes ...change) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1000-int64(age), 0))},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}}},
	}
	for _, c := range changes {
		c(s)
	}
	return s
}

func port(number int32, protocol corev1.Protocol) change {
	return func(s *corev1.Service) { s.Spec.Ports[0].Port, s.Spec.Ports[0].Protocol = number, protocol }
}
func has(ip string) change {
	return func(s *corev1.Service) {
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
	}
}
func asks(ip string) change { return func(s *corev1.Service) { s.Spec.LoadBalancerIP = ip } }
func ofClass(class string) change {
	return func(s *corev1.Service) { s.Spec.LoadBalancerClass = &class }
}
func families(families ...corev1.IPFamily) change {
	return func(s *corev1.Service) { s.Spec.IPFamilies = families }
}
func local(s *corev1.Service) {
	s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
}
func plain(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP }

func node(name, ip string, changes ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}, Status: corev1.NodeStatus{
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: ip}},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
	for _, c := range changes {
		c(n)
	}
	return n
}

func servesIngresses(n *corev1.Node) {
	n.Labels[reserved.IngressLabel] = reserved.IngressPortsText(8080, 0)
}

// hasPorts has pods with ports of the machine, and a Gateway.
func hasPorts(n *corev1.Node) {
	told := reserved.Told{Pods: []reserved.Port{reserved.TCP(8600), reserved.UDP(53)}, Gateways: []int32{8700}}
	n.Annotations = map[string]string{reserved.Annotation: told.String()}
}

// onB is where all Services have endpoints; the Service self is that of the pod at port 8600.
func onB(_ *corev1.Service, node string) bool { return node == "b" || node == "down" }
func isSelf(s *corev1.Service, ip netip.Addr, port reserved.Port) bool {
	return s.Name == "self" && ip.String() == "192.0.2.2" && port == reserved.TCP(8600)
}

// hasQuota: every namespace has one.
func hasQuota(string) bool { return true }

func TestPlan(t *testing.T) {
	nodes := []*corev1.Node{
		node("b", "192.0.2.2", hasPorts), node("a", "192.0.2.1", servesIngresses), node("six", "2001:db8::1", servesIngresses),
		node("down", "192.0.2.3", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }),
		node("excluded", "192.0.2.4", func(n *corev1.Node) { n.Labels[corev1.LabelNodeExcludeBalancers] = "" }),
		node("loopback", "127.0.0.1"), node("link", "169.254.169.254"), node("group", "224.0.0.1"), node("none", "0.0.0.0"),
		node("simulated", "192.0.2.5", func(n *corev1.Node) { n.Labels[simulatednode.Label] = "x" }),
	}
	const both, four, six = "192.0.2.1 192.0.2.2", corev1.IPv4Protocol, corev1.IPv6Protocol
	const dual = "198.51.100.8/31,2001:db8:1::40/122"
	for name, c := range map[string]struct {
		source   string
		services []*corev1.Service
		want     map[string]string // the addresses of each Service, or why it has none
	}{
		"nodes":                   {"", []*corev1.Service{balanced("x", 1)}, map[string]string{"x": both}},
		"no machine's address":    {"", []*corev1.Service{balanced("x", 1)}, map[string]string{"x": both}},
		"nodes of IPv6":           {"", []*corev1.Service{balanced("x", 1, families(six))}, map[string]string{"x": "2001:db8::1"}},
		"nodes of both families":  {"", []*corev1.Service{balanced("x", 1, families(six, four))}, map[string]string{"x": both + " 2001:db8::1"}},
		"a pool and both":         {"198.51.100.8/31", []*corev1.Service{balanced("x", 1, families(four, six))}, map[string]string{"x": "198.51.100.8NoIPv6InPool"}},
		"a pool and IPv6":         {"198.51.100.8/31", []*corev1.Service{balanced("x", 1, families(six))}, map[string]string{"x": "NoIPv6InPool"}},
		"a pool of both":          {dual, []*corev1.Service{balanced("x", 1, families(six, four)), balanced("y", 2)}, map[string]string{"x": "2001:db8:1::41 198.51.100.9", "y": "198.51.100.8"}},
		"keeps both":              {dual, []*corev1.Service{balanced("x", 1, families(four, six), has("198.51.100.9"), has("2001:db8:1::42")), balanced("y", 2, families(four, six))}, map[string]string{"x": "198.51.100.9 2001:db8:1::42", "y": "198.51.100.8 2001:db8:1::41"}},
		"keeps one, gets one":     {dual, []*corev1.Service{balanced("x", 1, families(four, six), has("198.51.100.9"))}, map[string]string{"x": "198.51.100.9 2001:db8:1::41"}},
		"a family less":           {dual, []*corev1.Service{balanced("x", 1, has("198.51.100.9"), has("2001:db8:1::42"))}, map[string]string{"x": "198.51.100.9"}},
		"one family is exhausted": {dual, []*corev1.Service{balanced("x", 1, families(four, six)), balanced("y", 2), balanced("z", 3)}, map[string]string{"x": "2001:db8:1::41PoolExhausted", "y": "198.51.100.9", "z": "198.51.100.8"}},
		"asks for one of IPv6":    {dual, []*corev1.Service{balanced("x", 1, families(four, six), asks("2001:db8:1::43"), has("198.51.100.9"), has("2001:db8:1::42"))}, map[string]string{"x": "198.51.100.9 2001:db8:1::43"}},
		"asks for the other":      {dual, []*corev1.Service{balanced("x", 1, asks("2001:db8:1::43"), has("198.51.100.9"))}, map[string]string{"x": "AddressOfOtherFamily"}},
		"asks for IPv6, taken":    {dual, []*corev1.Service{balanced("x", 1, families(four, six), asks("2001:db8:1::42"), has("198.51.100.8")), balanced("y", 0, families(six, four), has("2001:db8:1::42"))}, map[string]string{"x": "AddressTaken", "y": "2001:db8:1::42 198.51.100.8"}},
		"nodes with endpoints":    {"", []*corev1.Service{balanced("x", 1, local)}, map[string]string{"x": "192.0.2.2"}},
		"one port twice":          {"", []*corev1.Service{balanced("x", 1), balanced("y", 2)}, map[string]string{"x": "PortTaken", "y": both}},
		"one port, two protocols": {"", []*corev1.Service{balanced("x", 1), balanced("y", 2, port(80, corev1.ProtocolUDP))}, map[string]string{"x": both, "y": both}},
		"the API's port":          {"", []*corev1.Service{balanced("x", 1, port(6443, corev1.ProtocolTCP))}, map[string]string{"x": "PortReserved"}},
		"gossip":                  {"", []*corev1.Service{balanced("x", 1, port(7947, corev1.ProtocolUDP))}, map[string]string{"x": "PortReserved"}},
		"VXLAN":                   {"", []*corev1.Service{balanced("x", 1, port(8472, corev1.ProtocolUDP)), balanced("y", 2, port(8472, corev1.ProtocolTCP))}, map[string]string{"x": "PortReserved", "y": both}},
		"a port of Ingresses":     {"", []*corev1.Service{balanced("x", 1, port(8080, corev1.ProtocolTCP))}, map[string]string{"x": "192.0.2.2"}},
		"of all nodes":            {"", []*corev1.Service{balanced("x", 1, port(8080, corev1.ProtocolTCP), families(six))}, map[string]string{"x": "PortReserved"}},
		"a port of a pod":         {"", []*corev1.Service{balanced("x", 1, port(8600, corev1.ProtocolTCP))}, map[string]string{"x": "192.0.2.1"}},
		"another protocol":        {"", []*corev1.Service{balanced("x", 1, port(8600, corev1.ProtocolUDP))}, map[string]string{"x": both}},
		"a port of its own pod":   {"", []*corev1.Service{balanced("self", 1, port(8600, corev1.ProtocolTCP))}, map[string]string{"self": both}},
		"a port of a Gateway":     {"", []*corev1.Service{balanced("x", 1, port(8700, corev1.ProtocolTCP))}, map[string]string{"x": "192.0.2.1"}},
		"of a pod, nowhere else":  {"", []*corev1.Service{balanced("x", 1, port(53, corev1.ProtocolUDP), local)}, map[string]string{"x": "PortReserved"}},
		"a node port":             {"", []*corev1.Service{balanced("x", 1, port(31000, corev1.ProtocolTCP))}, map[string]string{"x": "PortReserved"}},
		"its own node port": {"", []*corev1.Service{balanced("x", 1, port(31000, corev1.ProtocolTCP), func(s *corev1.Service) {
			s.Spec.Ports[0].NodePort = 31000
		})}, map[string]string{"x": both}},
		"a node port in a pool":   {"198.51.100.8/31", []*corev1.Service{balanced("x", 1, port(31000, corev1.ProtocolTCP))}, map[string]string{"x": "198.51.100.8"}},
		"in a pool":               {"198.51.100.8/31", []*corev1.Service{balanced("x", 1, port(6443, corev1.ProtocolTCP))}, map[string]string{"x": "198.51.100.8"}},
		"a pool with a machine":   {"192.0.2.2/31", []*corev1.Service{balanced("x", 1, port(6443, corev1.ProtocolTCP)), balanced("y", 2)}, map[string]string{"x": "PortReserved", "y": "192.0.2.2"}},
		"the machine's is passed": {"192.0.2.3/32,192.0.2.9/32", []*corev1.Service{balanced("x", 1, port(6443, corev1.ProtocolTCP))}, map[string]string{"x": "192.0.2.9"}},
		"a machine has come":      {"192.0.2.2/32,192.0.2.9/32", []*corev1.Service{balanced("x", 1, port(6443, corev1.ProtocolTCP), has("192.0.2.2"))}, map[string]string{"x": "192.0.2.9"}},
		"asks for the machine's":  {"192.0.2.2/32,192.0.2.9/32", []*corev1.Service{balanced("x", 1, port(6443, corev1.ProtocolTCP), asks("192.0.2.2"))}, map[string]string{"x": "PortReserved"}},
		"another class":           {"", []*corev1.Service{balanced("x", 2, ofClass("example.com/lb"), has("1.2.3.4")), balanced("y", 1)}, map[string]string{"y": both}},
		"our class":               {"", []*corev1.Service{balanced("x", 2, ofClass(Class))}, map[string]string{"x": both}},
		"no longer of the type":   {"", []*corev1.Service{balanced("x", 2, plain, has("192.0.2.1")), balanced("y", 1)}, map[string]string{"x": "", "y": both}},
		"a pool, in order of age": {"198.51.100.8/31", []*corev1.Service{balanced("x", 1), balanced("y", 2), balanced("z", 0)}, map[string]string{"x": "198.51.100.9", "y": "198.51.100.8", "z": "PoolExhausted"}},
		"who has one keeps it":    {"198.51.100.8/31", []*corev1.Service{balanced("x", 1, has("198.51.100.8")), balanced("y", 2)}, map[string]string{"x": "198.51.100.8", "y": "198.51.100.9"}},
		"two have the same":       {"198.51.100.8/31", []*corev1.Service{balanced("x", 1, has("198.51.100.8")), balanced("y", 2, has("198.51.100.8"))}, map[string]string{"x": "198.51.100.9", "y": "198.51.100.8"}},
		"from before the pool":    {"198.51.100.8/31", []*corev1.Service{balanced("x", 1, has("192.0.2.1"))}, map[string]string{"x": "198.51.100.8"}},
		"asks for one":            {"198.51.100.8/31", []*corev1.Service{balanced("x", 1, asks("198.51.100.9"), has("198.51.100.8"))}, map[string]string{"x": "198.51.100.9"}},
		"asks for another's":      {"198.51.100.8/31", []*corev1.Service{balanced("x", 1, asks("198.51.100.9")), balanced("y", 0, has("198.51.100.9"))}, map[string]string{"x": "AddressTaken", "y": "198.51.100.9"}},
		"asks for one elsewhere":  {"198.51.100.8/31", []*corev1.Service{balanced("x", 1, asks("192.0.2.9"))}, map[string]string{"x": "AddressNotInPool"}},
	} {
		source, err := Parse(c.source)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, d := range source.plan(world{c.services, nodes, onB, isSelf, hasQuota, reserved.Of(nodes)}) {
			got[d.service.Name] = strings.Join(d.addresses, " ") + d.reason
			if d.fromPool != (len(source.Pool) > 0 && len(d.addresses) > 0) {
				t.Errorf("%s: from the pool: %v", name, d.fromPool)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"": "{false []}", "nodes": "{false []}", "none": "{true []}", "192.0.2.0/24, 198.51.100.1/32": "{false [192.0.2.0/24 198.51.100.1/32]}",
		"10.0.0.0/16,2001:db8::/112": "{false [10.0.0.0/16 2001:db8::/112]}", "2001:db8::1/128": "{false [2001:db8::1/128]}",
	} {
		if s, err := Parse(text); err != nil || fmt.Sprint(s) != want {
			t.Errorf("%q: %v %v", text, s, err)
		}
	}
	for _, text := range []string{"all", "192.0.2.1", "192.0.2.1/24", "2001:db8::/64", "10.0.0.0/8", "10.0.0.0/16,192.0.2.0/24", ",",
		"2001:db8::1/112", "2001:db8::/112,2001:db8:1::/128", "::ffff:192.0.2.0/123"} {
		if _, err := Parse(text); !errors.Is(err, ErrSource) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestNamespacesShareAPool: a namespace gets another address of a family only if it then has no more of them than were left, whether it asks for a
// certain one or not. What it has stays. The share is not for kube-system, nor where a quota says a number.
func TestNamespacesShareAPool(t *testing.T) {
	of := func(namespace string) change { return func(s *corev1.Service) { s.Namespace = namespace } }
	const four, six = corev1.IPv4Protocol, corev1.IPv6Protocol
	const pool = "198.51.100.8/30,2001:db8:1::40/126" // four, and three
	for name, c := range map[string]struct {
		services []*corev1.Service
		want     map[string]string
	}{
		"one of all": {[]*corev1.Service{balanced("a", 9), balanced("b", 8), balanced("c", 7), balanced("d", 6, of("two")), balanced("e", 5, of("two"))},
			map[string]string{"a": "198.51.100.8", "b": "198.51.100.9", "c": "PoolShare", "d": "198.51.100.10", "e": "PoolShare"}},
		"asked for": {[]*corev1.Service{balanced("a", 9), balanced("b", 8), balanced("c", 7, asks("198.51.100.11"))},
			map[string]string{"a": "198.51.100.8", "b": "198.51.100.9", "c": "PoolShare"}},
		"of each family": {[]*corev1.Service{balanced("a", 9), balanced("b", 8), balanced("c", 7, families(four, six)), balanced("d", 6, families(six))},
			map[string]string{"a": "198.51.100.8", "b": "198.51.100.9", "c": "2001:db8:1::41PoolShare", "d": "2001:db8:1::42"}},
		"what was had": {[]*corev1.Service{balanced("a", 9, has("198.51.100.8")), balanced("b", 8, has("198.51.100.9")), balanced("c", 7, has("198.51.100.10")), balanced("d", 6, of("two"))},
			map[string]string{"a": "198.51.100.8", "b": "198.51.100.9", "c": "198.51.100.10", "d": "198.51.100.11"}},
		"given back": {[]*corev1.Service{balanced("a", 9, families(four, six), has("2001:db8:1::43"), asks("192.0.2.9")), balanced("b", 8, families(six)), balanced("c", 7, families(six))},
			map[string]string{"a": "AddressNotInPool", "b": "2001:db8:1::41", "c": "2001:db8:1::42"}},
		"the cluster's": {[]*corev1.Service{balanced("a", 9, of("kube-system")), balanced("b", 8, of("kube-system")), balanced("c", 7, of("kube-system"))},
			map[string]string{"a": "198.51.100.8", "b": "198.51.100.9", "c": "198.51.100.10"}},
		"a quota": {[]*corev1.Service{balanced("a", 9, of("large")), balanced("b", 8, of("large")), balanced("c", 7, of("large"))},
			map[string]string{"a": "198.51.100.8", "b": "198.51.100.9", "c": "198.51.100.10"}},
	} {
		source, err := Parse(pool)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, d := range source.plan(world{c.services, nil, onB, isSelf, func(namespace string) bool { return namespace == "large" }, reserved.Of(nil)}) {
			got[d.service.Name] = strings.Join(d.addresses, " ") + d.reason
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
