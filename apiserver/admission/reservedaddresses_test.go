package admission

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/internal/reserved"
	"github.com/setpoint-io/setpoint/internal/servicerange"
	"github.com/setpoint-io/setpoint/internal/trust"
)

var (
	tina    = &user.DefaultInfo{Name: "tina"}
	servers = &user.DefaultInfo{Name: "system:kube-controller-manager", Groups: []string{trust.GroupServers}}
)

// bookOfNode is that of one node with a server.
func bookOfNode() *reserved.Book {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{reserved.IngressLabel: "80-443"}}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}, {Type: corev1.NodeInternalIP, Address: "2001:db8::1"}}
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = 30250
	servers := []reserved.Server{{Name: "s", Addresses: []string{"192.0.2.9"}, Port: 30443, Gossip: 9000}}
	return reserved.Of([]*corev1.Node{n}, &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "kubernetes", Annotations: map[string]string{reserved.Annotation: reserved.TextOf(servers)},
	}})
}

func worldWithBook(t *testing.T) *world {
	w := newWorld(t, allowAll, withNamespace(
		&networkingv1.ServiceCIDR{ObjectMeta: named("kubernetes"), Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/16", "fd96::/112"}}},
		&networkingv1.ServiceCIDR{ObjectMeta: named("more"), Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.200.0.0/24"}}},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: servicerange.ConfigMap},
			Data:       map[string]string{servicerange.ConfigMapPodsKey: "10.42.0.0/16"},
		})...)
	w.configure(t, Config{Authorizer: authorizer.AuthorizerFunc(allowAll), ExternalIPs: ExternalIPs{"all"}, Reserved: bookOfNode()})
	return w
}

func serviceWith(number int32, protocol corev1.Protocol, edit ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: inNS("s"), Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Port: number, Protocol: protocol}},
	}}
	for _, e := range edit {
		e(s)
	}
	return s
}

func externally(ips ...string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.ExternalIPs = ips }
}

func asksFor(ip string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.Type, s.Spec.LoadBalancerIP = corev1.ServiceTypeLoadBalancer, ip }
}

func balancedAt(ip string) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Spec.Type, s.Status.LoadBalancer.Ingress = corev1.ServiceTypeLoadBalancer, []corev1.LoadBalancerIngress{{IP: ip}}
	}
}

func atNodePort(number int32) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.Type, s.Spec.Ports[0].NodePort = corev1.ServiceTypeNodePort, number }
}

func withHostPort(number int32, protocol corev1.Protocol, own bool) *corev1.Pod {
	return podNamed("p", func(p *corev1.Pod) {
		p.Spec.HostNetwork = own
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: number, HostPort: number, Protocol: protocol}}
	})
}

func sliceAt(ip string, number int32, protocol corev1.Protocol) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: inNS("x"), Endpoints: []discoveryv1.Endpoint{{Addresses: []string{ip}}}, Ports: []discoveryv1.EndpointPort{{Port: &number, Protocol: &protocol}},
	}
}

func endpointsAt(ip string, number int32, protocol corev1.Protocol) *corev1.Endpoints {
	return &corev1.Endpoints{ObjectMeta: inNS("x"), Subsets: []corev1.EndpointSubset{{
		Addresses: []corev1.EndpointAddress{{IP: ip}}, Ports: []corev1.EndpointPort{{Port: number, Protocol: protocol}},
	}}}
}

func TestNobodyClaimsWhatIsTheClusters(t *testing.T) {
	const tcp, udp = corev1.ProtocolTCP, corev1.ProtocolUDP
	w := worldWithBook(t)
	for name, c := range map[string]struct {
		request request
		words   string
	}{
		"the API by an external address": {
			request{obj: serviceWith(30443, tcp, externally("198.51.100.1", "192.0.2.1"))},
			`spec.externalIPs[1]: Invalid value: "192.0.2.1": port 30443/TCP of node n1 is for the API`,
		},
		"its own node port": {request{obj: serviceWith(31000, tcp, atNodePort(31000), externally("192.0.2.1"))}, ""},
		"a node port of others": {
			request{obj: serviceWith(31000, tcp, atNodePort(31001), externally("192.0.2.1"))}, "port 31000/TCP of node n1 is for node ports of Services",
		},
		"of another protocol": {request{obj: serviceWith(31000, udp, externally("192.0.2.1"), func(s *corev1.Service) {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: 80, Protocol: tcp, NodePort: 31000})
		})}, "port 31000/UDP of node n1 is for node ports of Services"},
		"of a server without a node": {
			request{obj: serviceWith(30443, tcp, externally("192.0.2.9"))}, `Invalid value: "192.0.2.9": port 30443/TCP of server s is for the API`,
		},
		"in IPv6":           {request{obj: serviceWith(10250, tcp, externally("2001:db8::1"))}, "spec.externalIPs[0]: "},
		"another port":      {request{obj: serviceWith(81, tcp, externally("192.0.2.1"))}, ""},
		"another address":   {request{obj: serviceWith(30443, tcp, externally("198.51.100.1"))}, ""},
		"gossip":            {request{obj: serviceWith(9000, udp, externally("192.0.2.1"))}, "port 9000/UDP of node n1 is for gossip between servers and nodes"},
		"VXLAN":             {request{obj: serviceWith(8472, udp, externally("192.0.2.9"))}, "is for VXLAN between nodes"},
		"WireGuard":         {request{obj: serviceWith(51820, udp, externally("192.0.2.1"))}, "is for WireGuard between nodes"},
		"Ingresses":         {request{obj: serviceWith(443, tcp, externally("192.0.2.1"))}, "port 443/TCP of node n1 is for Ingresses"},
		"none there":        {request{obj: serviceWith(443, tcp, externally("192.0.2.9"))}, ""},
		"DNS":               {request{obj: serviceWith(53, udp, externally("10.96.0.10"))}, "addresses of 10.96.0.0/16 are given out by the cluster, to Services"},
		"a Service, IPv6":   {request{obj: serviceWith(53, udp, externally("fd96::7"))}, "addresses of fd96::/112 are"},
		"a later range":     {request{obj: serviceWith(53, udp, externally("10.200.0.7"))}, "addresses of 10.200.0.0/24 are"},
		"a pod":             {request{obj: serviceWith(53, udp, externally("10.42.3.7"))}, "to pods"},
		"asked for":         {request{obj: serviceWith(30443, tcp, asksFor("192.0.2.1"))}, `spec.loadBalancerIP: Invalid value: "192.0.2.1"`},
		"given":             {request{obj: serviceWith(30443, tcp, balancedAt("192.0.2.1")), old: serviceWith(30443, tcp, asksFor("")), subresource: "status"}, "status.loadBalancer.ingress[0].ip: "},
		"given on loopback": {request{obj: serviceWith(30443, tcp, balancedAt("127.0.0.1")), old: serviceWith(30443, tcp, asksFor("")), subresource: "status"}, "every machine of the cluster"},
		"given by another":  {request{obj: serviceWith(80, tcp, balancedAt("203.0.113.1")), old: serviceWith(80, tcp, asksFor("")), subresource: "status"}, ""},
		"a load balancer":   {request{obj: serviceWith(30443, tcp, asksFor(""))}, ""}, // it gets no address of a node
		"a node port":       {request{obj: serviceWith(80, tcp, atNodePort(30443))}, "spec.ports[0].nodePort: Invalid value: 30443: port 30443/TCP of every machine of the cluster is for the API"},
		"a health port": {
			request{obj: serviceWith(80, tcp, asksFor(""), func(s *corev1.Service) { s.Spec.HealthCheckNodePort = 30443 })}, "spec.healthCheckNodePort: ",
		},
		"a node port of one node's agent": {
			request{obj: serviceWith(80, tcp, atNodePort(30250))}, "Invalid value: 30250: port 30250/TCP of some machines of the cluster is for the node agent",
		},
		"an agent's port there":     {request{obj: serviceWith(30250, tcp, externally("192.0.2.1"))}, "port 30250/TCP of node n1 is for the node agent"},
		"and at another machine":    {request{obj: serviceWith(30250, tcp, externally("192.0.2.9"))}, ""},
		"a host port of one node's": {request{obj: withHostPort(30250, tcp, false)}, ""}, // that node refuses it
		"another node port":         {request{obj: serviceWith(80, tcp, atNodePort(30444))}, ""},
		"a host port":               {request{obj: withHostPort(30443, tcp, false)}, "spec.containers[0].ports[0].hostPort: Invalid value: 30443"},
		"a host port for VXLAN":     {request{obj: withHostPort(8472, udp, false)}, "is for VXLAN"},
		"of Ingresses":              {request{obj: withHostPort(80, tcp, false)}, ""}, // a node that serves them refuses it
		"on the host":               {request{obj: withHostPort(30443, tcp, true)}, ""},
		"an endpoint": {
			request{obj: sliceAt("192.0.2.1", 8472, udp), who: tina}, `endpoints[0].addresses[0]: Invalid value: "192.0.2.1": port 8472/UDP of node n1 is for VXLAN`,
		},
		"an endpoint that asks who is there": {request{obj: sliceAt("192.0.2.1", 10250, tcp), who: tina}, ""},
		"an endpoint of the control plane":   {request{obj: sliceAt("192.0.2.1", 9000, tcp), who: servers}, ""},
		"Endpoints":                          {request{obj: endpointsAt("192.0.2.9", 9000, tcp), who: tina}, "subsets[0].addresses[0].ip: "},
		"Endpoints of a pod":                 {request{obj: endpointsAt("10.42.0.3", 9000, tcp), who: tina}, ""},
	} {
		if c.request.who == nil {
			c.request.who = tina
		}
		err := w.admit(t, c.request)
		t.Run(name, func(t *testing.T) { check(t, err, c.words) })
		if c.words != "" && !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v is no 422", name, err)
		}
	}
}

// TestRangesMatterForServices: nobody else's writes read them.
func TestRangesMatterForServices(t *testing.T) {
	w, book := worldWithBook(t), bookOfNode()
	w.configure(t, Config{Authorizer: authorizer.AuthorizerFunc(allowAll), ExternalIPs: ExternalIPs{"all"}, Reserved: book})
	known := func() bool { _, taken := book.At(netip.MustParseAddr("10.96.0.10"), reserved.UDP(53)); return taken }
	check(t, w.admit(t, request{obj: withHostPort(80, corev1.ProtocolTCP, false), who: tina}), "")
	check(t, w.admit(t, request{obj: sliceAt("192.0.2.1", 10250, corev1.ProtocolTCP), who: tina}), "")
	if known() {
		t.Error("a pod or an endpoint has them read")
	}
	check(t, w.admit(t, request{obj: serviceWith(80, corev1.ProtocolTCP, externally("192.0.2.1")), who: tina}), "is for Ingresses")
	if !known() {
		t.Error("a Service is judged without them")
	}
}

// TestWhatWasStoredMayStay: it can be changed, as long as nothing more is claimed, and deleted.
func TestWhatWasStoredMayStay(t *testing.T) {
	w := worldWithBook(t)
	old := serviceWith(30443, corev1.ProtocolTCP, externally("192.0.2.1"))
	same, port, more := old.DeepCopy(), old.DeepCopy(), old.DeepCopy()
	same.Labels = map[string]string{"a": "b"}
	port.Spec.Ports = append(port.Spec.Ports, corev1.ServicePort{Port: 10250, Protocol: corev1.ProtocolTCP})
	more.Spec.ExternalIPs = append(more.Spec.ExternalIPs, "192.0.2.9")
	check(t, w.admit(t, request{obj: same, old: old, who: tina}), "")
	check(t, w.admit(t, request{obj: serviceWith(80, corev1.ProtocolTCP), old: old, who: tina}), "")
	check(t, w.admit(t, request{old: old, who: tina}), "")
	check(t, w.admit(t, request{obj: port, old: old, who: tina}), "port 10250/TCP of node n1 is for the node agent")
	check(t, w.admit(t, request{obj: more, old: old, who: tina}), "spec.externalIPs[1]: ")
}

func TestExternalAddressesAreDenied(t *testing.T) {
	const denied = "Use of external IPs is denied by admission control"
	plain, one := serviceWith(81, corev1.ProtocolTCP), serviceWith(81, corev1.ProtocolTCP, externally("203.0.113.1"))
	two := serviceWith(81, corev1.ProtocolTCP, externally("203.0.113.1", "203.0.113.2"))
	for _, c := range []struct {
		allowed  ExternalIPs
		obj, old resource.Object
		words    string
	}{
		{nil, plain, nil, ""}, {nil, one, nil, denied}, {nil, one, plain, denied}, {nil, one, one, ""}, {nil, one, two, ""}, {nil, two, one, denied}, {nil, plain, two, ""},
		{ExternalIPs{"none"}, one, nil, denied}, {ExternalIPs{"all"}, one, nil, ""}, {ExternalIPs{"other", "ns"}, one, nil, ""}, {ExternalIPs{"other"}, one, nil, denied},
	} {
		w := worldWithBook(t)
		w.configure(t, Config{Authorizer: authorizer.AuthorizerFunc(allowAll), ExternalIPs: c.allowed, Reserved: bookOfNode()})
		err := w.admit(t, request{obj: c.obj, old: c.old, who: tina})
		t.Run(fmt.Sprint(c.allowed), func(t *testing.T) { check(t, err, c.words) })
		if c.words != "" && !apierrors.IsForbidden(err) {
			t.Errorf("%v is not Forbidden", err)
		}
	}
	for _, bad := range []ExternalIPs{{"all", "ns"}, {"none", "ns"}, {"A"}, {""}} {
		if err := bad.Validate(); !errors.Is(err, errExternalIPs) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
