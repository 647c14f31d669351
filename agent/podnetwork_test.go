package agent

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/net/network"
)

// TestPeersHaveRangesOfTheCluster: a Node's range becomes a route on every machine. None may
// lead traffic astray that is not for the node's own pods.
func TestPeersHaveRangesOfTheCluster(t *testing.T) {
	single := PodNetwork{Ranges: network.Ranges{Pods: netip.MustParsePrefix("10.42.0.0/16")}, NodeMaskSize: 24}
	both := PodNetwork{
		Ranges:       network.Ranges{Pods: netip.MustParsePrefix("10.42.0.0/16"), Pods6: netip.MustParsePrefix("fd42::/56")},
		NodeMaskSize: 24, NodeMaskSize6: 64,
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	peer := func(name, cidr string, age time.Duration) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(start.Add(-age))}, Spec: corev1.NodeSpec{PodCIDR: strings.Split(cidr, ",")[0], PodCIDRs: strings.Split(cidr, ",")},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}},
		}
	}
	self := peer("self", "10.42.0.0/24", 0)
	for name, c := range map[string]struct {
		network PodNetwork
		nodes   []*corev1.Node
		want    map[string]string
	}{
		"ranges of the cluster":      {single, []*corev1.Node{peer("a", "10.42.1.0/24", 0), peer("b", "10.42.255.0/24", 0)}, map[string]string{"a": "10.42.1.0/24", "b": "10.42.255.0/24"}},
		"half of the world":          {single, []*corev1.Node{peer("a", "0.0.0.0/1", 0)}, nil},
		"all pods":                   {single, []*corev1.Node{peer("a", "10.42.0.0/16", 0)}, nil},
		"a part":                     {single, []*corev1.Node{peer("a", "10.42.1.0/25", 0)}, nil},
		"elsewhere":                  {single, []*corev1.Node{peer("a", "10.43.1.0/24", 0)}, nil},
		"an address in it":           {single, []*corev1.Node{peer("a", "10.42.1.7/24", 0)}, nil},
		"no range":                   {single, []*corev1.Node{peer("a", "", 0), peer("b", "x", 0)}, nil},
		"IPv6":                       {single, []*corev1.Node{peer("a", "fd00::/24", 0)}, nil},
		"the older has it":           {single, []*corev1.Node{peer("a", "10.42.1.0/24", 0), peer("b", "10.42.1.0/24", time.Hour)}, map[string]string{"b": "10.42.1.0/24"}},
		"one age: the first by name": {single, []*corev1.Node{peer("b", "10.42.1.0/24", 0), peer("a", "10.42.1.0/24", 0)}, map[string]string{"a": "10.42.1.0/24"}},
		"ours":                       {single, []*corev1.Node{peer("a", "10.42.0.0/24", time.Hour)}, nil},
		"an unknown network":         {PodNetwork{}, []*corev1.Node{peer("a", "10.43.1.0/25", 0)}, map[string]string{"a": "10.43.1.0/25"}},
		"both families": {both, []*corev1.Node{peer("a", "10.42.1.0/24,fd42:0:0:1::/64", 0), peer("b", "10.42.2.0/24", 0)},
			map[string]string{"a": "10.42.1.0/24,fd42:0:0:1::/64", "b": "10.42.2.0/24"}},
		"the second elsewhere":     {both, []*corev1.Node{peer("a", "10.42.1.0/24,fd43:0:0:1::/64", 0), peer("b", "10.42.2.0/24,fd42::/56", 0)}, nil},
		"the older has the second": {both, []*corev1.Node{peer("a", "10.42.1.0/24,fd42:0:0:1::/64", 0), peer("b", "10.42.2.0/24,fd42:0:0:1::/64", time.Hour)}, map[string]string{"b": "10.42.2.0/24,fd42:0:0:1::/64"}},
		"a second of none":         {single, []*corev1.Node{peer("a", "10.42.1.0/24,fd42:0:0:1::/64", 0)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for _, p := range peersOf("self", append(c.nodes, self), c.network) {
				got[p.Name] = p.PodCIDR.String()
				if p.PodCIDR6.IsValid() {
					got[p.Name] += "," + p.PodCIDR6.String()
				}
			}
			if c.want == nil {
				c.want = map[string]string{}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
