package admission

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/setpoint-io/setpoint/apiserver/auth"
)

// TestNoNodeHasAnothersAddress: Services of the type LoadBalancer would get it, and all nodes would lead what is sent there to them.
func TestNoNodeHasAnothersAddress(t *testing.T) {
	at := func(name string, ready corev1.ConditionStatus, addresses ...string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		for _, ip := range addresses {
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
		}
		return n
	}
	ready := func(name string, addresses ...string) *corev1.Node {
		return at(name, corev1.ConditionTrue, addresses...)
	}
	external := func(ip string) *corev1.Node {
		n := ready("a", ip)
		n.Status.Addresses[0].Type = corev1.NodeExternalIP
		return n
	}
	other := ready("b", "192.0.2.2", "2001:db8::2")
	other.Spec.PodCIDR, other.Spec.PodCIDRs = "10.42.1.0/24", []string{"10.42.1.0/24", "fd42:0:0:1::/64"}
	pooled := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	pooled.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "198.51.100.8"}}
	pooled.Status.Conditions = []metav1.Condition{{Type: addressFromPool, Status: metav1.ConditionTrue}}
	balanced := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nodes"}}
	balanced.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	ranges := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/16"}}}
	w := newWorld(t, allowAll, ready("a"), other, at("gone", corev1.ConditionUnknown, "192.0.2.3"), pooled, balanced, ranges)
	for name, c := range map[string]nodeWrite{
		"registers":                     {nodeA, admission.Create, ready("a", "192.0.2.1"), nil, true},
		"two families and loopback":     {nodeA, admission.Create, ready("a", "192.0.2.1", "2001:db8::1", "127.0.0.1"), nil, true},
		"changes":                       {nodeA, admission.Update, ready("a", "192.0.2.9"), ready("a", "192.0.2.1"), true},
		"another node's":                {nodeA, admission.Update, ready("a", "192.0.2.2"), ready("a", "192.0.2.1"), false},
		"another node's, beside its":    {nodeA, admission.Update, ready("a", "192.0.2.1", "192.0.2.2"), ready("a", "192.0.2.1"), false},
		"another node's, at first":      {nodeA, admission.Create, ready("a", "192.0.2.2"), nil, false},
		"another node's second":         {nodeA, admission.Update, ready("a", "2001:db8::2"), ready("a"), false},
		"another node's, written so":    {nodeA, admission.Update, ready("a", "::ffff:192.0.2.2"), ready("a"), false},
		"another node's, external":      {nodeA, admission.Update, external("192.0.2.2"), ready("a"), false},
		"of a node that is away":        {nodeA, admission.Update, ready("a", "192.0.2.3"), ready("a"), true},
		"had it before the rule was":    {nodeA, admission.Update, ready("a", "192.0.2.2"), ready("a", "192.0.2.2"), true},
		"a pod's":                       {nodeA, admission.Update, ready("a", "10.42.1.7"), ready("a"), false},
		"a pod's second":                {nodeA, admission.Update, ready("a", "fd42:0:0:1::7"), ready("a"), false},
		"a Service's":                   {nodeA, admission.Update, ready("a", "10.96.0.10"), ready("a"), false},
		"of the pool":                   {nodeA, admission.Update, ready("a", "198.51.100.8"), ready("a"), false},
		"all of them":                   {nodeA, admission.Update, ready("a", "0.0.0.0"), ready("a"), false},
		"a group's":                     {nodeA, admission.Update, ready("a", "224.0.0.1"), ready("a"), false},
		"link-local":                    {nodeA, admission.Update, ready("a", "169.254.169.254"), ready("a"), false},
		"a name":                        {nodeA, admission.Update, ready("a", "b"), ready("a"), false},
		"an administrator says so of a": {someone, admission.Update, ready("a", "192.0.2.2"), ready("a"), true},
	} {
		c.check(t, name, newNodeRestriction(w.store, nil, nil))
	}
}

// TestAServersAddressIsToldFromItsMachine: other nodes would route what is for the server to that node.
func TestAServersAddressIsToldFromItsMachine(t *testing.T) {
	w := newWorld(t, allowAll)
	r := newNodeRestriction(w.store, nil, bookOfServer("192.0.2.9", "2001:db8::9"))
	at := func(addresses ...string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: named("a")}
		for _, ip := range addresses {
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
		}
		return n
	}
	const words = `node "a" is not allowed to say that the address "192.0.2.9" is its own: server s1 has it, and the request comes from 192.0.2.5`
	for name, c := range map[string]struct {
		from     string
		now, was *corev1.Node
		words    string
	}{
		"from elsewhere":             {"192.0.2.5:4711", at("192.0.2.9"), at("192.0.2.5"), words},
		"from elsewhere, written so": {"192.0.2.5:4711", at("::ffff:192.0.2.9"), at(), "server s1 has it"},
		"from elsewhere, second":     {"192.0.2.5:4711", at("192.0.2.5", "2001:db8::9"), at("192.0.2.5"), "server s1 has it"},
		"registers":                  {"192.0.2.5:4711", at("192.0.2.9"), nil, "server s1 has it"},
		"from there":                 {"192.0.2.9:4711", at("192.0.2.9"), nil, ""},
		"from there, written so":     {"[::ffff:192.0.2.9]:4711", at("192.0.2.9"), nil, ""},
		"both from one of them":      {"192.0.2.9:4711", at("192.0.2.9", "2001:db8::9"), at("192.0.2.9"), ""},
		"over loopback":              {"127.0.0.1:4711", at("192.0.2.9"), at(), ""},
		"over the other loopback":    {"[::1]:4711", at("192.0.2.9"), at(), ""},
		"in this process":            {"", at("192.0.2.9"), at(), ""},
		"as it was":                  {"192.0.2.5:4711", at("192.0.2.9"), at("192.0.2.9"), ""},
		"no server's":                {"192.0.2.5:4711", at("192.0.2.6"), at("192.0.2.5"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var old runtime.Object
			operation := admission.Create
			if c.was != nil {
				old, operation = c.was, admission.Update
			}
			ctx := context.WithValue(t.Context(), auth.ClientAddressKey{}, c.from)
			check(t, r.Admit(ctx, admission.NewAttributesRecord(c.now, old, schema.GroupVersionKind{}, "", "a",
				corev1.SchemeGroupVersion.WithResource("nodes"), "status", operation, nil, false, nodeA), nil), c.words)
		})
	}
}
