package services

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/net/network"
)

// TestLookup: of two Services with one node port the older has it, and addresses that nobody has are nobody's.
func TestLookup(t *testing.T) {
	named := func(name, ip string, created int64) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, CreationTimestamp: metav1.Unix(created, 0)},
			Spec:       corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080, Protocol: corev1.ProtocolTCP}}},
		}
	}
	all := []*corev1.Service{named("young", "10.96.0.2", 2), named("old", "10.96.0.1", 1)}
	l := NewLookup(all, func(*corev1.Service) []*discoveryv1.EndpointSlice { return nil }, Place{Node: "a"}, nil)
	for address, want := range map[string]string{"0.0.0.0:30080": "old", "10.96.0.1:80": "old", "10.96.0.2:80": "young", "10.96.0.3:80": ""} {
		at := network.ServiceAddress{Protocol: 6, Address: netip.MustParseAddrPort(address)}
		s, holder, ok := l.At(at)
		if holder.Name != want || ok != (want != "") || ok && s.ServiceAddress != at {
			t.Errorf("%s: %+v of %s, %v; want %s", address, s, holder, ok, want)
		}
	}
}
