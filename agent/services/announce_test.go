package services

import (
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func fromThePool(s *corev1.Service) {
	s.Status.Conditions = []metav1.Condition{{Type: fromPool, Status: metav1.ConditionTrue}}
}

func TestOneNodeAnnouncesAnAddress(t *testing.T) {
	nodes := []string{"a", "b", "c"}
	var all []pooled
	for i := range 64 {
		all = append(all, pooled{ips: []netip.Addr{netip.MustParseAddr(fmt.Sprintf("192.0.2.%d", i))}})
	}
	owners := func(nodes []string) map[netip.Addr]string {
		owner := map[netip.Addr]string{}
		for _, n := range nodes {
			for _, ip := range elected(all, nodes, n) {
				if owner[ip] != "" {
					t.Errorf("%s: %s and %s", ip, owner[ip], n)
				}
				owner[ip] = n
			}
		}
		return owner
	}
	before, after := owners(nodes), owners([]string{"c", "a"})
	count := map[string]int{}
	for ip, was := range before {
		count[was]++
		if was != "b" && after[ip] != was {
			t.Errorf("%s moved from %s to %s", ip, was, after[ip])
		}
	}
	if len(before) != 64 || len(after) != 64 || len(count) != 3 {
		t.Errorf("%d, then %d: %v", len(before), len(after), count)
	}
	if got := elected(all, nil, "a"); got != nil {
		t.Errorf("without nodes: %v", got)
	}
}

func TestWhatIsAnnounced(t *testing.T) {
	behind := sliceList{sliceOf("x", "a", 8080, on("n1", ready("10.42.0.3")), on("n2", unready("10.42.1.3")))}
	for name, c := range map[string]struct {
		changes []change
		want    map[string]bool // the nodes that may
	}{
		"any":        {[]change{balanced, fromThePool}, map[string]bool{"n1": true, "n2": true}},
		"near":       {[]change{balanced, fromThePool, externalLocal}, map[string]bool{"n1": true}},
		"not a pool": {[]change{balanced}, nil},
		"not a type": {[]change{balanced, fromThePool, nodePort}, nil},
	} {
		p := pooledOf(serviceOf("a", "10.96.0.9", c.changes...), behind)
		for _, n := range []string{"n1", "n2"} {
			if got := len(elected([]pooled{p}, []string{n}, n)) > 0; got != c.want[n] {
				t.Errorf("%s: %s: %v", name, n, got)
			}
		}
	}
	node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	if !announces(node) {
		t.Error("a ready node announces")
	}
	node.Labels = map[string]string{corev1.LabelNodeExcludeBalancers: ""}
	if announces(node) || announces(&corev1.Node{}) {
		t.Error("an excluded node announces, or one that is not ready")
	}
}
