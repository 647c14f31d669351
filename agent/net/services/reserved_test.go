package services

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

func (w *world) expectRefused(what string, want ...string) {
	w.t.Helper()
	if got := w.refused; !slices.Equal(got, want) {
		w.t.Errorf("%s: told %q, want %q", what, got, want)
	}
	w.refused = nil
}

func nodeAt(name, address string) *reserved.Machine {
	return reserved.OfNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}},
	}})
}

// TestNobodyTakesThePortsOfMachines: not by what an older server stored, and not from a node that comes later or says another port.
func TestNobodyTakesThePortsOfMachines(t *testing.T) {
	inBubble(t, func(w *world) {
		w.book.SetNode("n1", nodeAt("n1", "192.0.2.1"))
		api := serviceOf("a", "10.96.0.9", func(s *corev1.Service) {
			s.Spec.Ports[0].Port, s.Spec.ExternalIPs = 6443, []string{"192.0.2.1", "203.0.113.5"}
		})
		w.put(api)
		w.put(sliceOf("x", "a", 8080, ready("10.42.0.3")))
		w.after(settleTime)
		cluster, far := leads("10.96.0.9:6443", "10.42.0.3:8080"), with(leads("203.0.113.5:6443", "10.42.0.3:8080"), isExternal)
		w.expect("a port of a node", []string{"change"}, cluster, far)
		w.expectRefused("a port of a node", "ns/a: 192.0.2.1:6443/TCP is not served: port 6443/TCP of node n1 is for the API")

		w.book.SetNode("n2", nodeAt("n2", "203.0.113.5"))
		w.after(settleTime)
		w.expect("a node that comes with the address", []string{"change"}, cluster)
		w.expectRefused("a node that comes", "ns/a: 203.0.113.5:6443/TCP is not served: port 6443/TCP of node n2 is for the API")
		w.book.SetNode("n3", nodeAt("n3", "203.0.113.6"))
		w.after(settleTime)
		w.expect("one that concerns nobody", nil, cluster)
		w.expectRefused("one that concerns nobody")

		w.book.SetNode("n2", nil)
		w.after(settleTime)
		w.expect("the node is gone", []string{"change"}, cluster, far)
		w.refused = nil

		api.Spec.Ports[0].Port = 16443
		w.put(api)
		w.after(settleTime)
		moved := with(leads("203.0.113.5:16443", "10.42.0.3:8080"), isExternal)
		w.expect("another port", []string{"change"}, leads("10.96.0.9:16443", "10.42.0.3:8080"), with(leads("192.0.2.1:16443", "10.42.0.3:8080"), isExternal), moved)
		w.book.SetServers([]reserved.Machine{{Name: "server s", Ports: map[reserved.Port]reserved.Use{reserved.TCP(16443): reserved.API}}})
		w.after(settleTime)
		w.expect("a server takes it", []string{"change"}, leads("10.96.0.9:16443", "10.42.0.3:8080"), moved)
		w.expectRefused("a server takes it", "ns/a: 192.0.2.1:16443/TCP is not served: port 16443/TCP of node n1 is for the API")
		w.after(time.Hour)
		w.expect("quiet", nil, leads("10.96.0.9:16443", "10.42.0.3:8080"), moved)
		w.expectRefused("quiet")
	})
}

func TestWhatElseIsNotServed(t *testing.T) {
	inBubble(t, func(w *world) {
		w.book.SetNode("n1", nodeAt("n1", "192.0.2.9"))
		w.book.SetServers([]reserved.Machine{{Name: "server s", Ports: map[reserved.Port]reserved.Use{reserved.TCP(30080): reserved.API}}})
		w.put(serviceOf("n", "10.96.0.9", nodePort))
		w.put(serviceOf("d", "10.96.0.8", udp, func(s *corev1.Service) {
			s.Spec.Ports[0].Port, s.Spec.ExternalIPs = 53, []string{"10.96.0.10"}
		}))
		w.put(serviceOf("l", "10.96.0.7", balanced, func(s *corev1.Service) { s.Spec.Ports[0].Port = 7946 }))
		w.put(sliceOf("x", "l", 7947, ready("10.42.0.3"), ready("192.0.2.9")))
		w.book.SetRanges(reserved.Range{Prefix: netip.MustParsePrefix("10.96.0.0/16"), Of: reserved.Services})
		w.after(settleTime)
		w.expect("addresses of load balancers, node ports, addresses of other Services, endpoints", []string{"change"},
			leads("10.96.0.7:7946", "10.42.0.3:7947"), with(leads("10.96.0.8:53"), func(s *network.Service) { s.Protocol = 17 }), leads("10.96.0.9:80"))
		slices.Sort(w.refused)
		w.expectRefused("all", "ns/d: 10.96.0.10:53/UDP is not served: addresses of 10.96.0.0/16 are given out by the cluster, to Services",
			"ns/l: 192.0.2.9:7946/TCP is not served: port 7946/TCP of node n1 is for gossip between servers and nodes",
			"ns/n: node port 30080/TCP is not served: port 30080/TCP of every machine of the cluster is for the API")
	})
}

// TestAnAddressOfWhichNothingIsServed is not announced: its owner would be asked in the machine's place.
func TestAnAddressOfWhichNothingIsServed(t *testing.T) {
	book := reserved.New()
	book.SetNode("n1", nodeAt("n1", "192.0.2.9"))
	for name, test := range map[string]struct {
		ports []int32
		want  int
	}{"all ports are refused": {[]int32{6443, 10250}, 0}, "one is left": {[]int32{6443, 80}, 1}, "none is refused": {[]int32{80}, 1}} {
		s := serviceOf("a", "10.96.0.9", balanced, fromThePool, func(s *corev1.Service) {
			s.Spec.Ports = nil
			for _, port := range test.ports {
				s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: port, Protocol: corev1.ProtocolTCP})
			}
		})
		if got := plan(s, nil, here).withoutReserved(book, here.Node).pooled.ips; len(got) != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestANodePortThatOneNodeHas is served on the others: what a node says keeps nobody's node port from them.
func TestANodePortThatOneNodeHas(t *testing.T) {
	inBubble(t, func(w *world) {
		agentAt := func(port int32) *reserved.Machine {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
			n.Status.DaemonEndpoints.KubeletEndpoint.Port = port
			return reserved.OfNode(n)
		}
		w.put(serviceOf("a", "10.96.0.9", nodePort))
		w.put(sliceOf("x", "a", 8080, ready("10.42.0.3")))
		w.after(settleTime)
		inside, atNodes := leads("10.96.0.9:80", "10.42.0.3:8080"), with(leads("0.0.0.0:30080", "10.42.0.3:8080"), isExternal)
		w.expect("a node port", []string{"change"}, atNodes, inside)
		const some = "ns/a: node port 30080/TCP is not served on some nodes: port 30080/TCP of some machines of the cluster is for the node agent"
		w.book.SetNode("stolen", agentAt(30080))
		w.after(settleTime)
		w.expect("another node has it", nil, atNodes, inside)
		w.expectRefused("another node has it", some)
		w.book.SetNode(here.Node, agentAt(30080))
		w.after(settleTime)
		w.expect("this node has it", []string{"change"}, inside)
		w.expectRefused("told already")
		w.book.SetNode(here.Node, nil)
		w.after(settleTime)
		w.expect("this node has it no longer", []string{"change"}, atNodes, inside)
	})
}

// TestOneNodeTells: a thousand nodes do not write a thousand events.
func TestOneNodeTells(t *testing.T) {
	tellers := map[string]int{}
	for i := range 30 {
		for _, node := range []string{"a", "b", "c", "away"} {
			w := &watch{Config: Config{NodeName: node}, announcing: map[string]announcer{"a": {any: true}, "b": {any: true}, "c": {any: true}, "away": {}}}
			if name := (types.NamespacedName{Name: fmt.Sprint("s", i)}); w.tellsOf(name) {
				tellers[name.Name]++
			}
		}
	}
	for name, n := range tellers {
		if n != 1 {
			t.Errorf("%d nodes tell of %s", n, name)
		}
	}
	if len(tellers) != 30 {
		t.Errorf("nodes tell of %d Services of 30", len(tellers))
	}
}

// TestAnEndpointAtItsOwnAddress: a pod that has a port of its node, and is the Service's endpoint there, needs no translation; that is no
// news. A pod of others keeps the port, which is.
func TestAnEndpointAtItsOwnAddress(t *testing.T) {
	inBubble(t, func(w *world) {
		n1 := nodeAt("n1", "192.0.2.1")
		n1.Ports[reserved.TCP(8600)] = reserved.Pod
		w.book.SetNode("n1", n1)
		w.put(serviceOf("a", "10.96.0.9", func(s *corev1.Service) { s.Spec.Ports[0].Port, s.Spec.ExternalIPs = 8600, []string{"192.0.2.1"} }))
		w.put(sliceOf("x", "a", 8600, ready("192.0.2.1")))
		w.after(settleTime)
		w.expect("its own endpoint", []string{"change"}, leads("10.96.0.9:8600", "192.0.2.1:8600"))
		w.expectRefused("its own endpoint")
		w.put(sliceOf("x", "a", 8080, ready("10.42.0.3")))
		w.after(settleTime)
		w.expect("another's", []string{"change"}, leads("10.96.0.9:8600", "10.42.0.3:8080"))
		w.expectRefused("another's", "ns/a: 192.0.2.1:8600/TCP is not served: port 8600/TCP of node n1 is for a pod of that machine")
	})
}
