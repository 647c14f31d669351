package podconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestPortMappings(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{
			{Ports: []corev1.ContainerPort{{ContainerPort: 1, HostPort: 1}}}, // it has ended when the others run
			{RestartPolicy: &always, Ports: []corev1.ContainerPort{{ContainerPort: 2, HostPort: 20}}},
		},
		Containers: []corev1.Container{
			{Ports: []corev1.ContainerPort{{ContainerPort: 3}, {ContainerPort: 4, HostPort: 40, Protocol: corev1.ProtocolUDP, HostIP: "127.0.0.1"}}},
			{Ports: []corev1.ContainerPort{{ContainerPort: 5, HostPort: 50, Protocol: corev1.ProtocolSCTP}}},
		},
	}}
	want := []*runtimeapi.PortMapping{
		{ContainerPort: 2, HostPort: 20},
		{ContainerPort: 4, HostPort: 40, Protocol: runtimeapi.Protocol_UDP, HostIp: "127.0.0.1"},
		{ContainerPort: 5, HostPort: 50, Protocol: runtimeapi.Protocol_SCTP},
	}
	if diff := cmp.Diff(want, portMappings(pod), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	pod.Spec.HostNetwork = true
	if got := portMappings(pod); got != nil {
		t.Errorf("in the host's network: %v", got)
	}
}
