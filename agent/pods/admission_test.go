package pods

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
)

func TestPodsWhoseHostPortIsTakenAreRejected(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		create := func(name string, port corev1.ContainerPort) corev1.PodStatus {
			p := newPod(name, "web")
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 1}, port}
			w.create(p)
			return w.get(name).Status
		}
		if got := create("p", corev1.ContainerPort{HostPort: 80}); got.Phase != corev1.PodRunning {
			t.Errorf("p: %s %s", got.Phase, got.Message)
		}
		if got := create("q", corev1.ContainerPort{HostPort: 80, HostIP: "127.0.0.1"}); got.Reason != "NodePorts" || got.Phase != corev1.PodFailed {
			t.Errorf("q: %s %s %s", got.Phase, got.Reason, got.Message)
		}
		if got := create("r", corev1.ContainerPort{HostPort: 80, Protocol: corev1.ProtocolUDP}); got.Phase != corev1.PodRunning {
			t.Errorf("r: %s %s", got.Phase, got.Message)
		}
	})
}

func TestSamePort(t *testing.T) {
	for _, c := range []struct {
		p, q corev1.ContainerPort
		want bool
	}{
		{corev1.ContainerPort{HostPort: 80}, corev1.ContainerPort{HostPort: 80, Protocol: corev1.ProtocolTCP, HostIP: "10.0.0.1"}, true},
		{corev1.ContainerPort{HostPort: 80, HostIP: "0.0.0.0"}, corev1.ContainerPort{HostPort: 80, HostIP: "10.0.0.1"}, true},
		{corev1.ContainerPort{HostPort: 80, HostIP: "10.0.0.2"}, corev1.ContainerPort{HostPort: 80, HostIP: "10.0.0.1"}, false},
		{corev1.ContainerPort{HostPort: 80}, corev1.ContainerPort{HostPort: 81}, false},
		{corev1.ContainerPort{HostPort: 80}, corev1.ContainerPort{HostPort: 80, Protocol: corev1.ProtocolSCTP}, false},
	} {
		if samePort(&c.p, &c.q) != c.want || samePort(&c.q, &c.p) != c.want {
			t.Errorf("%+v %+v: want %v", c.p, c.q, c.want)
		}
	}
}
