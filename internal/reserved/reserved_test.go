package reserved

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func node(name string, change func(*corev1.Node), addresses ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{IngressLabel: IngressPortsText(80, 443)}, Annotations: map[string]string{Annotation: Told{Gossip: 7947}.String()},
	}}
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = 10250
	for _, a := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	if change != nil {
		change(n)
	}
	return n
}

// slice tells of these servers.
func slice(servers ...Server) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "kubernetes", Annotations: map[string]string{Annotation: TextOf(servers)},
	}}
}

// bookOf is that of two nodes, one of which serves no Ingresses, and a server apart from them.
func bookOf(t *testing.T) *Book {
	t.Helper()
	b := New()
	for _, n := range []*corev1.Node{
		node("n1", nil, "192.0.2.1", "2001:db8::1"),
		node("n2", func(n *corev1.Node) { n.Labels = nil }, "192.0.2.2"),
	} {
		b.SetNode(n.Name, OfNode(n))
	}
	b.SetServers(OfServers(slice(Server{Name: "server-1", Addresses: []string{"192.0.2.9"}, Port: 6443, Gossip: 7946})))
	b.SetRanges(Range{netip.MustParsePrefix("10.96.0.0/16"), "Services"}, Range{Of: "nobody"})
	return b
}

func TestWhoHasAPort(t *testing.T) {
	b := bookOf(t)
	for claim, want := range map[string]string{
		"192.0.2.9 6443/TCP":        "port 6443/TCP of server server-1 is for the API",
		"192.0.2.1 6443/TCP":        "port 6443/TCP of node n1 is for the API", // a server may come to this machine
		"2001:db8::1 6443/TCP":      "port 6443/TCP of node n1 is for the API",
		"::ffff:192.0.2.1 6443/TCP": "port 6443/TCP of node n1 is for the API",
		"192.0.2.9 10250/TCP":       "port 10250/TCP of server server-1 is for the node agent",
		"192.0.2.1 7946/UDP":        "port 7946/UDP of node n1 is for gossip between servers and nodes",
		"192.0.2.9 7947/TCP":        "port 7947/TCP of server server-1 is for gossip between servers and nodes",
		"192.0.2.2 8472/UDP":        "port 8472/UDP of node n2 is for VXLAN between nodes",
		"192.0.2.2 51820/UDP":       "port 51820/UDP of node n2 is for WireGuard between nodes",
		"192.0.2.1 80/TCP":          "port 80/TCP of node n1 is for Ingresses",
		"127.0.0.1 6443/TCP":        "port 6443/TCP of every machine of the cluster is for the API",
		"0.0.0.0 443/TCP":           "port 443/TCP of some machines of the cluster is for Ingresses",
		"10.96.0.10 4/SCTP":         "addresses of 10.96.0.0/16 are given out by the cluster, to Services",
		"192.0.2.2 30080/TCP":       "port 30080/TCP of node n2 is for node ports of Services",
		"2001:db8::1 32767/UDP":     "port 32767/UDP of node n1 is for node ports of Services",
		// What is free.
		"0.0.0.0 30080/TCP":      "",
		"192.0.2.9 30080/TCP":    "", // a server without a node
		"198.51.100.7 30080/UDP": "",
		"192.0.2.2 80/TCP":       "",
		"192.0.2.1 8472/TCP":     "",
		"192.0.2.1 6443/UDP":     "",
		"192.0.2.1 22/TCP":       "",
		"198.51.100.7 6443/TCP":  "",
	} {
		var ip string
		var p Port
		if _, err := fmt.Sscanf(claim, "%s %d/%s", &ip, &p.Number, &p.Protocol); err != nil {
			t.Fatal(err)
		}
		h, taken := b.At(netip.MustParseAddr(ip), p)
		if got := map[bool]string{true: h.String()}[taken]; got != want {
			t.Errorf("%s: %q, want %q", claim, got, want)
		}
	}
	if _, taken := b.Everywhere(TCP(80)); taken {
		t.Error("a port of Ingresses is not reserved on machines that serve none")
	}
	if h, closed := b.Closed(netip.MustParseAddr("192.0.2.1"), UDP(8472)); !closed || h.Use != VXLAN {
		t.Error("the port of VXLAN is open")
	}
	for _, open := range []struct {
		ip   string
		port Port
	}{{"192.0.2.1", TCP(10250)}, {"192.0.2.9", TCP(6443)}, {"192.0.2.1", TCP(80)}, {"198.51.100.7", UDP(8472)}, {"10.96.0.10", UDP(53)}} {
		if _, closed := b.Closed(netip.MustParseAddr(open.ip), open.port); closed {
			t.Errorf("%v is closed", open)
		}
	}
}

// TestMachinesComeChangeAndGo: what nobody has any more is free, what two have stays.
func TestMachinesComeChangeAndGo(t *testing.T) {
	b, changes := bookOf(t), 0
	b.OnChange(func() { changes++ })
	has := func(ip string, port Port, want bool) {
		t.Helper()
		if h, taken := b.At(netip.MustParseAddr(ip), port); taken != want {
			t.Errorf("%s %s: %v (%v), want %v", ip, port, taken, h, want)
		}
	}
	first := func(port int32) Server { return Server{Name: "server-1", Addresses: []string{"192.0.2.9"}, Port: port} }
	second := Server{Name: "server-2", Addresses: []string{"192.0.2.1"}, Port: 26443}
	b.SetServers(OfServers(slice(first(6443), second)))
	b.SetServers(OfServers(slice(first(16443), second)))
	has("192.0.2.1", TCP(16443), true)
	has("192.0.2.9", TCP(26443), true) // server-2 has it
	b.SetServers(OfServers(slice(first(16443))))
	has("192.0.2.1", TCP(26443), false)
	if want := 3; changes != want {
		t.Errorf("%d changes told, want %d", changes, want)
	}
	n3 := node("n3", func(n *corev1.Node) { n.Status.DaemonEndpoints.KubeletEndpoint.Port = 20250 }, "198.51.100.7", "192.0.2.1")
	has("198.51.100.7", TCP(10250), false)
	b.SetNode("n3", OfNode(n3))
	b.SetNode("n3", OfNode(n3))
	has("198.51.100.7", TCP(10250), true)
	has("192.0.2.2", TCP(20250), false) // a node says what its own machine has
	b.SetNode("n1", nil)
	has("192.0.2.1", TCP(10250), true) // n3 says that it is its own too
	has("2001:db8::1", TCP(10250), false)
	b.SetNode("n3", nil)
	b.SetNode("n3", nil)
	has("192.0.2.2", TCP(20250), false)
	has("192.0.2.2", UDP(8472), true)
	if want := 6; changes != want {
		t.Errorf("%d changes told, want %d", changes, want)
	}
}

// TestANodeSpeaksForItself: a stolen node keeps nobody from a port of the other machines, whatever it says.
func TestANodeSpeaksForItself(t *testing.T) {
	b := bookOf(t)
	b.SetNode("stolen", OfNode(node("stolen", func(n *corev1.Node) {
		n.Annotations[Annotation] = Told{Gossip: 20080}.String()
		n.Status.DaemonEndpoints.KubeletEndpoint.Port = 20443
	}, "192.0.2.66")))
	everywhere, here := netip.IPv4Unspecified(), netip.MustParseAddr("192.0.2.66")
	for _, port := range []Port{TCP(20080), UDP(20080), TCP(20443)} {
		if h, taken := b.Everywhere(port); taken {
			t.Errorf("%s is reserved everywhere", h)
		}
		for _, ip := range []string{"192.0.2.1", "192.0.2.9"} {
			if h, taken := b.At(netip.MustParseAddr(ip), port); taken {
				t.Errorf("%s: %s", ip, h)
			}
		}
		if h, taken := b.From("n1", everywhere, port); taken {
			t.Errorf("on n1 %s", h)
		}
		if h, taken := b.From("stolen", everywhere, port); !taken || h.By != "node stolen" {
			t.Errorf("its own: %v", h)
		}
		if h, taken := b.At(here, port); !taken || h.By != "node stolen" {
			t.Errorf("its own: %v", h)
		}
		if h, taken := b.Anywhere(port); !taken || h.By != "some machines of the cluster" {
			t.Errorf("anywhere: %v", h)
		}
	}
	if _, closed := b.Closed(netip.MustParseAddr("192.0.2.1"), UDP(20080)); closed {
		t.Error("a port of another node is closed")
	}
	if _, taken := b.From("n1", netip.MustParseAddr("127.0.0.1"), TCP(6443)); !taken {
		t.Error("what all machines have is free on one of them")
	}
}

// TestPortsOfPodsAndGateways are a machine's own: a node port of the same number is another thing.
func TestPortsOfPodsAndGateways(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{
		{ContainerPort: 80, HostPort: 21000}, {ContainerPort: 53, HostPort: 53, Protocol: corev1.ProtocolUDP}, {ContainerPort: 81},
		{ContainerPort: 82, HostPort: 82, HostIP: "127.0.0.1"},
	}}}}}
	told := Told{Gossip: 53, Pods: PortsOf(pod), Gateways: []int32{8700}}
	if want := `{"gossip":53,"pods":["21000/TCP","53/UDP"],"gateways":[8700]}`; told.String() != want {
		t.Errorf("told %s, want %s", told, want)
	}
	b := bookOf(t)
	b.SetNode("n9", OfNode(node("n9", func(n *corev1.Node) { n.Annotations[Annotation] = told.String() }, "192.0.2.99")))
	for port, want := range map[Port]Use{TCP(21000): Pod, UDP(53): Gossip, TCP(8700): Gateway, TCP(82): "", TCP(81): ""} {
		if h, _ := b.At(netip.MustParseAddr("192.0.2.99"), port); h.Use != want {
			t.Errorf("%s is for %q, want %q", port, h.Use, want)
		}
		_, elsewhere := b.At(netip.MustParseAddr("192.0.2.1"), port)
		_, anywhere := b.Anywhere(port)
		_, here := b.From("n9", netip.IPv4Unspecified(), port)
		if gossips := want == Gossip; elsewhere || anywhere != gossips || here != gossips {
			t.Errorf("%s: elsewhere %v, as a node port anywhere %v, here %v", port, elsewhere, anywhere, here)
		}
	}
	var many Told
	for number := range int32(2 * portsMax) {
		many.Pods, many.Gateways = append(many.Pods, UDP(number+1)), append(many.Gateways, number+1)
	}
	forged, _ := json.Marshal(many) // a stolen node writes what it likes
	if len(many.String()) > len(forged)*3/5 {
		t.Errorf("%d bytes are told", len(many.String()))
	}
	plain := len(OfNode(node("few", nil, "192.0.2.97")).Ports)
	m := OfNode(node("many", func(n *corev1.Node) { n.Annotations[Annotation] = string(forged) }, "192.0.2.98"))
	if got := len(m.Ports) - plain; got > 2*portsMax {
		t.Errorf("%d ports are read", got)
	}
}

// TestRangesOpenNoPort: a machine whose address is one of a range has the same closed ports.
func TestRangesOpenNoPort(t *testing.T) {
	b := bookOf(t)
	b.SetRanges(Range{netip.MustParsePrefix("192.0.2.0/24"), Pods})
	if _, closed := b.Closed(netip.MustParseAddr("192.0.2.1"), UDP(8472)); !closed {
		t.Error("the port of VXLAN is open")
	}
}

func TestWhatIsTold(t *testing.T) {
	server := Server{Name: "server-1", Addresses: []string{"192.0.2.9", "2001:db8::9"}, Port: 6443}
	told := slice(server)
	if got := TextOf(ServersOf(told)); got != TextOf([]Server{server}) {
		t.Error(got)
	}
	tenants, broken := told.DeepCopy(), told.DeepCopy()
	tenants.Namespace, broken.Annotations[Annotation] = "tenant", "{"
	if len(OfServers(tenants))+len(OfServers(broken))+len(OfServers(nil)) > 0 {
		t.Error("somebody else says what the servers are")
	}
	if !Changed(nil, told) || !Changed(told, broken) || Changed(told, told.DeepCopy()) || Changed(nil, tenants) {
		t.Error("changes of servers are not seen")
	}
	b := Of(nil, slice(Keep([]Server{server}, []Server{{Name: "server-1", Gossip: 9000}})...))
	if h, _ := b.At(netip.MustParseAddr("2001:db8::9"), UDP(9000)); h.Use != Gossip {
		t.Error("the port of a server that does not answer is free")
	}
	far := node("far", func(n *corev1.Node) { n.Annotations[Annotation] = Told{Gossip: 9001}.String() }, "192.0.2.5")
	for text, want := range map[string]int{"": 3, "{": 3, Told{}.String(): 3, Told{Gossip: 9001}.String(): 5, `{"gossip":70000}`: 3} {
		if far.Annotations[Annotation] = text; len(OfNode(far).Ports) != want {
			t.Errorf("%s: %v", text, OfNode(far).Ports)
		}
	}
	moved := far.DeepCopy()
	moved.Status.Addresses[0].Address = "192.0.2.6"
	if !Changed(far, moved) || Changed(far, far.DeepCopy()) || !Changed(far, nil) {
		t.Error("changes of nodes are not seen")
	}
	if got := PortOf("[2001:db8::9]:6443"); got != 6443 || PortOf("nothing") != 0 {
		t.Error(got)
	}
}

func TestClaims(t *testing.T) {
	service := &corev1.Service{}
	service.Spec.Type = corev1.ServiceTypeLoadBalancer
	service.Spec.ExternalIPs = []string{"192.0.2.1", "no address"}
	service.Spec.LoadBalancerIP = "192.0.2.2"
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "a"}, {IP: "192.0.2.3"}}
	service.Spec.HealthCheckNodePort = 30002
	service.Spec.Ports = []corev1.ServicePort{{Port: 80, Protocol: "TCP", NodePort: 30001}, {Port: 53, Protocol: "UDP"}}
	pod := &corev1.Pod{}
	pod.Spec.InitContainers = []corev1.Container{{}, {Ports: []corev1.ContainerPort{{HostPort: 1, Protocol: "UDP"}}}}
	pod.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: 5, Protocol: "TCP"}, {HostPort: 2, Protocol: "TCP"}}}}
	own := pod.DeepCopy()
	own.Spec.HostNetwork = true
	behind := &discoveryv1.EndpointSlice{
		Endpoints: []discoveryv1.Endpoint{{}, {Addresses: []string{"192.0.2.1"}}}, Ports: []discoveryv1.EndpointPort{{Port: new(int32(7))}, {}},
	}
	endpoints := &corev1.Endpoints{Subsets: []corev1.EndpointSubset{{
		NotReadyAddresses: []corev1.EndpointAddress{{IP: "192.0.2.1"}}, Ports: []corev1.EndpointPort{{Port: 7, Protocol: "UDP"}},
	}}}
	for name, test := range map[string]struct {
		claims []Claim
		want   string
	}{
		"Service": {OfService(service), "[spec.externalIPs[0] 192.0.2.1 80/TCP spec.externalIPs[0] 192.0.2.1 53/UDP " +
			"spec.loadBalancerIP 192.0.2.2 80/TCP spec.loadBalancerIP 192.0.2.2 53/UDP " +
			"status.loadBalancer.ingress[1].ip 192.0.2.3 80/TCP status.loadBalancer.ingress[1].ip 192.0.2.3 53/UDP " +
			"spec.ports[0].nodePort 0.0.0.0 30001/TCP spec.healthCheckNodePort 0.0.0.0 30002/TCP]"},
		"pod":                            {OfPod(pod), "[spec.initContainers[1].ports[0].hostPort 0.0.0.0 1/UDP spec.containers[0].ports[1].hostPort 0.0.0.0 2/TCP]"},
		"pod with the machine's network": {OfPod(own), "[]"},
		"slice":                          {OfSlice(behind), "[endpoints[1].addresses[0] 192.0.2.1 7/TCP]"},
		"Endpoints":                      {OfEndpoints(endpoints), "[subsets[0].notReadyAddresses[0].ip 192.0.2.1 7/UDP]"},
	} {
		var got []string
		for _, c := range test.claims {
			got = append(got, fmt.Sprint(c.Path, " ", c.Address, " ", c.Port))
		}
		if fmt.Sprint(got) != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// BenchmarkAt: 5,000 nodes cost what one costs.
func BenchmarkAt(b *testing.B) {
	for _, nodes := range []int{1, 5000} {
		b.Run(fmt.Sprint(nodes, " nodes"), func(b *testing.B) {
			book := New()
			for i := range nodes {
				n := node(fmt.Sprint("n", i), nil, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}).String())
				book.SetNode(n.Name, OfNode(n))
			}
			for b.Loop() {
				book.At(netip.MustParseAddr("10.0.0.0"), TCP(6443))
			}
		})
	}
}
