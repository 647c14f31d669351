package nettrace

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/setpoint-io/setpoint/agent/net/network/plan"
)

// sixInText has the addresses of IPv6 of those that the worlds have.
var sixInText = strings.NewReplacer("192.0.2.1:", "[2001:db8::1]:", "10.42.1.2:", "[fd42:0:0:1::2]:", "10.96.0.", "fd96::")

// six is the address of IPv6 beside one of IPv4.
func six(four string) string {
	parts := strings.Split(four, ".")
	switch parts[0] + "." + parts[1] {
	case "10.96":
		return "fd96::" + parts[3]
	case "10.42":
		return netip.MustParseAddr("fd42:0:0:" + parts[2] + "::" + parts[3]).String()
	}
	return "2001:db8::" + parts[3]
}

// dual gives nodes and pods a second address. Services keep theirs.
func dual(w *World) *World {
	for _, n := range w.Nodes {
		facts := plan.ParseFacts(n.Annotations[plan.Annotation])
		if len(facts.Subnets) > 0 {
			facts.Subnets = append(facts.Subnets, netip.MustParsePrefix("2001:db8::/64"))
		}
		n.Annotations[plan.Annotation] = facts.String()
		first := netip.MustParsePrefix(n.Spec.PodCIDR)
		n.Spec.PodCIDRs = []string{n.Spec.PodCIDR, netip.MustParsePrefix(six(first.Addr().String()) + "/64").Masked().String()}
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: six(n.Status.Addresses[0].Address)})
	}
	for _, p := range w.Pods {
		p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: six(p.Status.PodIP)})
	}
	return w
}

// inIPv6 is dual, and Services have IPv6 only.
func inIPv6(w *World) *World {
	for _, s := range dual(w).Services {
		s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol}
		if len(s.Spec.ClusterIPs) > 0 {
			s.Spec.ClusterIP = six(s.Spec.ClusterIP)
			s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
		}
	}
	for i, n := range w.Nodes {
		for j := range n.Status.Conditions {
			message := &w.Nodes[i].Status.Conditions[j].Message
			*message = strings.ReplaceAll(*message, "10.42.1.0/24", "fd42:0:0:1::/64")
		}
	}
	return w
}

// ofBoth is dual, and the Service web has addresses of both families.
func ofBoth(w *World) *World {
	s := dual(w).service("web")
	s.Spec.IPFamilies, s.Spec.ClusterIPs = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}, []string{"10.96.0.7", "fd96::7"}
	return w
}

func problem(message string) func(*World) {
	return func(w *World) {
		w.Nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: networkProblem, Status: corev1.ConditionTrue, Message: message}}
	}
}

func onlyFrom(cidr string) func(*World) {
	return func(w *World) {
		policy := denyAll(networkingv1.PolicyTypeIngress, "web")
		policy.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: cidr}}}}}
		w.Policies = []*networkingv1.NetworkPolicy{policy}
	}
}

// TestBothFamilies: both ways are followed where there are two, and each is judged by itself.
func TestBothFamilies(t *testing.T) {
	const four, sixth = "10.42.1.2:8080 on node b", "[fd42:0:0:1::2]:8080 on node b"
	for name, c := range map[string]struct {
		to      string
		spoil   func(*World)
		verdict Verdict
		why     string
		reached []string
	}{
		"a Service":            {to: "service/web", verdict: Arrives, reached: []string{four, sixth}},
		"its name":             {to: "web:80", verdict: Arrives, reached: []string{four, sixth}},
		"its second address":   {to: "[fd96::7]:80", verdict: Arrives, reached: []string{sixth}},
		"its node port":        {to: "service/web:30080", verdict: Arrives, reached: []string{four, sixth}},
		"another node's port":  {to: "[2001:db8::2]:30080", verdict: Arrives, reached: []string{sixth}},
		"the machine's bridge": {to: "[fd42::1]:30080", verdict: Arrives, reached: []string{sixth}},
		"on a machine without IPv6": {
			to: "fd96::7", verdict: Arrives, reached: []string{sixth}, spoil: func(w *World) {
				w.Pods[0].Spec.HostNetwork, w.Pods[0].Status.PodIPs = true, []corev1.PodIP{{IP: "192.0.2.1"}}
			},
		},
		"a pod":           {to: "pod/web-0", verdict: Arrives, reached: []string{four, sixth}},
		"a pod's address": {to: "fd42:0:0:1::2", verdict: Arrives, reached: []string{sixth}},
		"a policy for IPv4": {
			to: "service/web", spoil: onlyFrom("10.42.0.0/16"), verdict: Partly,
			why: `no rule of networkpolicy/deny lets TCP port 8080 through from pod/client`, reached: []string{four, sixth},
		},
		"a policy for IPv6":       {to: "fd96::7", spoil: onlyFrom("fd42::/56"), verdict: Arrives, reached: []string{sixth}},
		"no route for IPv6":       {to: "web:80", spoil: problem("node c: x; node b: no way (IPv6)"), verdict: Partly, why: "node b: no way (IPv6)", reached: []string{four, sixth}},
		"IPv4, no route for IPv6": {to: "10.96.0.7", spoil: problem("node b: no way (IPv6); node b: route to fd42:0:0:1::/64"), verdict: Arrives, reached: []string{four}},
		"IPv6, no route for IPv4": {to: "fd96::7", spoil: problem("node b: route to 10.42.1.0/24 via x"), verdict: Arrives, reached: []string{sixth}},
		"the pod has IPv4 only": {
			to: "web:80", spoil: func(w *World) { w.Pods[0].Status.PodIPs = w.Pods[0].Status.PodIPs[:1] }, verdict: Arrives, reached: []string{four},
		},
		"the pod has IPv4 only, and asks for IPv6": {
			to: "[fd96::7]:80", spoil: func(w *World) { w.Pods[0].Status.PodIPs = w.Pods[0].Status.PodIPs[:1] }, verdict: Stops,
			why: "it has no address of IPv6",
		},
		"endpoints of IPv4 only": {
			to: "web:80", spoil: func(w *World) { w.Pods[1].Status.PodIPs = w.Pods[1].Status.PodIPs[:1] }, verdict: Partly,
			why: "none of its ready endpoints has an address of IPv6", reached: []string{four},
		},
		"outside": {to: "[2001:db8:9::1]:443", verdict: Arrives},
		"outside, from a node without IPv6": {
			to: "[2001:db8:9::1]:443", spoil: func(w *World) { w.Nodes[0].Status.Addresses = w.Nodes[0].Status.Addresses[:1] }, verdict: Unsure,
			why: "node a lists no address of IPv6",
		},
		"no pod's": {to: "[fd42:0:0:1::99]:80", verdict: Stops, why: "no pod has this address, which is of node b"},
	} {
		w := ofBoth(shop())
		if c.spoil != nil {
			c.spoil(w)
		}
		got := trace(t, w, "client", c.to)
		var reached []string
		for _, s := range got.Steps {
			if s.Step == "endpoint" {
				reached = append(reached, s.Says)
			}
		}
		if got.Verdict != c.verdict || !strings.Contains(got.Why, c.why) || !slices.Equal(reached, c.reached) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
