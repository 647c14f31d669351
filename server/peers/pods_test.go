package peers

import (
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/poddial"
)

func TestWhoseAgentConnectsToAPod(t *testing.T) {
	node := func(name, cidr string, age time.Duration, features ...string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-age))}}
		n.Spec.PodCIDR, n.Status.DeclaredFeatures = cidr, features
		return n
	}
	nodes := []*corev1.Node{
		node("a", "10.42.0.0/24", 0, poddial.Feature),
		node("b", "10.42.1.0/24", 0, "Other", poddial.Feature),
		node("stock", "10.42.2.0/24", 0),
		node("liar", "10.42.1.0/24", -time.Hour, poddial.Feature), // younger than b
		node("older", "10.42.3.0/24", time.Hour),
		node("younger", "10.42.3.0/24", 0, poddial.Feature),
		node("new", "", 0, poddial.Feature),
		node("broken", "10.42", 0, poddial.Feature),
	}
	for address, want := range map[string]string{
		"10.42.0.7": "a", "10.42.1.255": "b", "10.42.2.1": "", "10.42.3.1": "", "10.42.9.1": "", "192.0.2.1": "", "::1": "", "::ffff:10.42.0.7": "a",
	} {
		got := ""
		if n := agentOf(nodes, netip.MustParseAddr(address).Unmap()); n != nil {
			got = n.Name
		}
		if got != want {
			t.Errorf("%s: by the agent of %q, want %q", address, got, want)
		}
	}
}
