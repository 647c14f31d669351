package hostfirewall

import (
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

func podWith(hostNetwork bool, ports ...corev1.ContainerPort) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{HostNetwork: hostNetwork, Containers: []corev1.Container{{Name: "main", Ports: ports}}}}
}

func sliceAt(address string, ports ...discoveryv1.EndpointPort) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{Endpoints: []discoveryv1.Endpoint{
		{Addresses: []string{"10.42.0.7"}}, {Addresses: []string{address}},
	}, Ports: ports}
}

func TestPorts(t *testing.T) {
	udp, sctp := corev1.ProtocolUDP, corev1.ProtocolSCTP
	sidecar := podWith(true)
	sidecar.Spec.InitContainers = []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: 9100, Protocol: corev1.ProtocolTCP}}}}
	for name, test := range map[string]struct {
		world World
		want  []Port
	}{
		"nothing": {World{}, nil},
		"the agent's own, once each and in order": {
			World{Listening: []Port{UDP(53), TCP(10250), TCP(53), TCP(10250)}}, []Port{TCP(53), TCP(10250), UDP(53)},
		},
		"a pod with the host's network": {
			World{Pods: []*corev1.Pod{podWith(true, corev1.ContainerPort{ContainerPort: 9100}, corev1.ContainerPort{ContainerPort: 53, Protocol: udp})}},
			[]Port{TCP(9100), UDP(53)},
		},
		"its init container":              {World{Pods: []*corev1.Pod{sidecar}}, []Port{TCP(9100)}},
		"a pod with a network of its own": {World{Pods: []*corev1.Pod{podWith(false, corev1.ContainerPort{ContainerPort: 9100})}}, nil},
		"an endpoint here": {
			World{Slices: []*discoveryv1.EndpointSlice{sliceAt("192.0.2.1", discoveryv1.EndpointPort{Port: ptr.To[int32](6443)})}}, []Port{TCP(6443)},
		},
		"an endpoint here, of IPv6 and SCTP": {
			World{Slices: []*discoveryv1.EndpointSlice{sliceAt("2001:db8::1", discoveryv1.EndpointPort{Port: ptr.To[int32](5), Protocol: &sctp})}},
			[]Port{{132, 5}},
		},
		"an endpoint on another node": {
			World{Slices: []*discoveryv1.EndpointSlice{sliceAt("192.0.2.2", discoveryv1.EndpointPort{Port: ptr.To[int32](6443)})}}, nil,
		},
		"an endpoint here with any port": {World{Slices: []*discoveryv1.EndpointSlice{sliceAt("192.0.2.1", discoveryv1.EndpointPort{})}}, nil},
		"a health check port":            {World{Services: []*corev1.Service{{Spec: corev1.ServiceSpec{HealthCheckNodePort: 31000}}, {}}}, []Port{TCP(31000)}},
	} {
		test.world.Own = []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}
		if got := test.world.Ports(); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
