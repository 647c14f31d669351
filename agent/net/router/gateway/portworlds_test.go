package gateway

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/setpoint-io/setpoint/internal/reserved"
	"github.com/setpoint-io/setpoint/internal/servicerange"
)

// nodePorts is a world of Gateways and Services of two namespaces that claim few ports at the nodes' addresses.
type nodePorts struct {
	random   *rand.Rand
	made     int
	gateways []*v1.Gateway
	services []*corev1.Service
	// machines has the API at one of the ports, for a while.
	machines *reserved.Book
}

func (w *nodePorts) port() int32 { return []int32{8080, 8081, 30001, 16443}[w.random.IntN(4)] }

func (w *nodePorts) object(kind string) metav1.ObjectMeta {
	w.made++
	return metav1.ObjectMeta{
		Namespace: []string{"a", "b"}[w.random.IntN(2)], Name: fmt.Sprint(kind, w.made), CreationTimestamp: metav1.NewTime(time.Unix(w.random.Int64N(30), 0)),
	}
}

func (w *nodePorts) change() {
	switch w.random.IntN(6) {
	case 0, 1:
		g := &v1.Gateway{ObjectMeta: w.object("g")}
		g.Spec = v1.GatewaySpec{GatewayClassName: "ours", Listeners: []v1.Listener{{Name: "l", Port: w.port(), Protocol: v1.HTTPProtocolType}}}
		w.gateways = append(w.gateways, g)
	case 2:
		s := &corev1.Service{ObjectMeta: w.object("s")}
		s.Spec.Ports = []corev1.ServicePort{{Port: w.port(), Protocol: []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP}[w.random.IntN(2)]}}
		if s.Spec.Type = corev1.ServiceTypeClusterIP; w.random.IntN(2) == 0 {
			s.Spec.ExternalIPs = []string{"192.0.2.1"}
		} else {
			s.Spec.Type, s.Status.LoadBalancer.Ingress = corev1.ServiceTypeLoadBalancer, []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
		}
		w.services = append(w.services, s)
	case 3:
		if len(w.gateways) > 0 {
			i := w.random.IntN(len(w.gateways))
			w.gateways = slices.Delete(w.gateways, i, i+1)
		}
	case 4:
		if len(w.services) > 0 {
			i := w.random.IntN(len(w.services))
			w.services = slices.Delete(w.services, i, i+1)
		}
	case 5:
		var servers []reserved.Machine
		if w.random.IntN(2) == 0 {
			servers = []reserved.Machine{{Name: "server s", Ports: map[reserved.Port]reserved.Use{reserved.TCP(16443): reserved.API}}}
		}
		w.machines.SetServers(servers)
	}
}

// has says whose the port of a Gateway's listener is if it is not the Gateway's; "": it is.
func (w *nodePorts) has(g *v1.Gateway) string {
	port := g.Spec.Listeners[0].Port
	if holding, taken := w.machines.Everywhere(reserved.TCP(port)); taken {
		return holding.String()
	}
	if servicerange.IsNodePort(port) {
		return "some Service"
	}
	for _, s := range w.services {
		if s.Spec.Ports[0].Protocol == corev1.ProtocolTCP && s.Spec.Ports[0].Port == port && older(s, g) < 0 {
			return s.Name
		}
	}
	return ""
}

// TestPortsOfGatewaysInManyWorlds: a Gateway is served at the nodes' addresses unless the port is the cluster's own, a node port, or that of
// an older Service, of whatever namespace; then it is told, and has the port as soon as nobody else does.
func TestPortsOfGatewaysInManyWorlds(t *testing.T) {
	refusals := 0
	for seed := range uint64(50) {
		in := world(t, "kind: ReferenceGrant\n")
		w := &nodePorts{random: rand.New(rand.NewPCG(seed, 4)), machines: in.Reserved}
		in.Reserved.SetNode("a", &reserved.Machine{Name: "a", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}})
		in.Services = func() []*corev1.Service { return w.services }
		for step := range 50 {
			w.change()
			in.Gateways = w.gateways
			built := Build(in)
			for _, state := range built.Gateways {
				port, by := state.Gateway.Spec.Listeners[0].Port, w.has(state.Gateway)
				accepted := meta.FindStatusCondition(state.Listeners[0].Conditions, string(v1.ListenerConditionAccepted))
				told := accepted.Status == metav1.ConditionFalse && accepted.Reason == string(v1.ListenerReasonPortUnavailable)
				if told != (by != "") || by == "" && built.Ports[int(port)] == nil {
					t.Errorf("%s at %d: %v (%s), and the port is %q's", state.Gateway.Name, port, told, accepted.Message, by)
				}
				if by != "" {
					refusals++
				}
			}
			for number := range built.Ports {
				if !slices.ContainsFunc(w.gateways, func(g *v1.Gateway) bool { return int(g.Spec.Listeners[0].Port) == number && w.has(g) == "" }) {
					t.Errorf("port %d is open for nobody", number)
				}
			}
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
	}
	if refusals < 500 {
		t.Errorf("the worlds are too quiet: %d refusals", refusals)
	}
}
