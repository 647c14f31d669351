package peers

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestWhereAnAgentIsDialled(t *testing.T) {
	for name, c := range map[string]struct {
		addresses []string
		want      string
	}{
		"the first":                    {[]string{"192.0.2.1", "192.0.2.2"}, "192.0.2.1"},
		"loopback of the same machine": {[]string{"192.0.2.1", "127.0.0.1"}, "127.0.0.1"},
		"none":                         {nil, ""},
	} {
		n := &corev1.Node{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "127.0.0.2"}}}}
		for _, a := range c.addresses {
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
		}
		if got := internalAddress(n); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
