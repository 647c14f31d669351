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
	nodes := map[string]announcer{"a": {any: true}, "b": {any: true}, "c": {any: true}}
	var all []pooled
	for i := range 64 {
		all = append(all, pooled{ips: []netip.Addr{netip.MustParseAddr(fmt.Sprintf("192.0.2.%d", i))}})
	}
	owners := func(nodes map[string]announcer) map[netip.Addr]string {
		owner := map[netip.Addr]string{}
		for n := range nodes {
			for _, ip := range elected(all, nodes, n) {
				if owner[ip] != "" {
					t.Errorf("%s: %s and %s", ip, owner[ip], n)
				}
				owner[ip] = n
			}
		}
		return owner
	}
	before, after := owners(nodes), owners(map[string]announcer{"a": {any: true}, "c": {any: true}, "b": {}})
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

// TestAddressesOfIPv6AreAnnouncedByNodesThatHaveOne: others have no link to announce them on.
func TestAddressesOfIPv6AreAnnouncedByNodesThatHaveOne(t *testing.T) {
	nodes := map[string]announcer{"four": {any: true}, "both": {any: true, second: true}, "out": {}}
	for i := range 16 {
		p := pooled{ips: []netip.Addr{netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", i+1))}}
		if got := elected([]pooled{p}, nodes, "both"); len(got) != 1 {
			t.Errorf("%v: the node with an address of IPv6 announces %v", p.ips, got)
		}
	}
	six := []pooled{{ips: []netip.Addr{netip.MustParseAddr("2001:db8::1")}}}
	if got := elected(six, map[string]announcer{"four": {any: true}}, "four"); got != nil {
		t.Errorf("no node has one: %v", got)
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
			if got := len(elected([]pooled{p}, map[string]announcer{n: {any: true}}, n)) > 0; got != c.want[n] {
				t.Errorf("%s: %s: %v", name, n, got)
			}
		}
	}
	node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	if got := announcerOf(node); got != (announcer{any: true}) {
		t.Errorf("a ready node announces %v", got)
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "2001:db8::9"}}
	if got := announcerOf(node); got != (announcer{any: true, second: true}) {
		t.Errorf("a ready node with an address of IPv6 announces %v", got)
	}
	node.Labels = map[string]string{corev1.LabelNodeExcludeBalancers: ""}
	if announcerOf(node).any || announcerOf(&corev1.Node{}).any {
		t.Error("an excluded node announces, or one that is not ready")
	}
	both := serviceOf("a", "10.96.0.9", balanced, fromThePool, func(s *corev1.Service) {
		s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: "2001:db8::77"})
	})
	if p := pooledOf(both, behind); len(p.ips) != 2 || p.ips[0].String() != "2001:db8::77" {
		t.Errorf("of both families: %v", p.ips)
	}
}
