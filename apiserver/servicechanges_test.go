package apiserver

import (
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// familyChange is one cell of upstream's matrix: what a PUT says of a Service that has one family or two. 0: nothing.
type familyChange struct {
	had                int
	order              []corev1.IPFamily
	headless           bool
	policy             corev1.IPFamilyPolicy
	families, clusters int
}

// want is how many families the Service has afterwards; 0: the change is refused. One that says nothing of the policy keeps it, a
// second family needs a policy that allows it, and one is given back by the policy SingleStack alone.
func (c familyChange) want() int {
	policy := c.policy
	if policy == "" {
		policy = policyFor(c.had)
	}
	asked := max(c.families, c.clusters)
	switch {
	case policy == corev1.IPFamilyPolicySingleStack && c.had == 1 && asked == 2:
		return 0
	case policy == corev1.IPFamilyPolicySingleStack:
		return 1
	case c.had == 2 && (c.families == 1 || c.clusters == 1):
		return 0
	}
	return 2
}

func policyFor(families int) corev1.IPFamilyPolicy {
	if families == 2 {
		return corev1.IPFamilyPolicyRequireDualStack
	}
	return corev1.IPFamilyPolicySingleStack
}

// service is one with the number of families, without addresses.
func (c familyChange) service(name string, policy corev1.IPFamilyPolicy, families int) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"k": "v"}, Ports: []corev1.ServicePort{{Port: 80}}, IPFamilies: c.order[:families],
	}}
	if policy != "" {
		s.Spec.IPFamilyPolicy = &policy
	}
	if c.headless {
		s.Spec.ClusterIP = corev1.ClusterIPNone
	}
	return s
}

// changed is what the PUT says of the Service before.
func (c familyChange) changed(before *corev1.Service, free map[corev1.IPFamily]string) *corev1.Service {
	s := c.service(before.Name, c.policy, c.families)
	if c.headless {
		return s
	}
	for i := range c.clusters {
		ip := free[c.order[i]]
		if i < len(before.Spec.ClusterIPs) {
			ip = before.Spec.ClusterIPs[i]
		}
		s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, ip)
	}
	return s
}

func familyChanges() (all []familyChange) {
	orders := [][]corev1.IPFamily{{corev1.IPv4Protocol, corev1.IPv6Protocol}, {corev1.IPv6Protocol, corev1.IPv4Protocol}}
	policies := []corev1.IPFamilyPolicy{"", corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack}
	for cell := range 2 * 2 * 4 * 3 * 3 {
		c := familyChange{had: 1 + cell%2, order: orders[cell/2%2], policy: policies[cell/4%4], families: cell / 16 % 3, clusters: cell / 48}
		all = append(all, c)
		if c.clusters == 0 && c.order[0] == corev1.IPv4Protocol {
			c.headless = true
			all = append(all, c)
		}
	}
	return all
}

// TestFamiliesOfPuts goes through all combinations of policy, families and addresses, from one family and from two, in both orders,
// and without addresses for headless Services.
func TestFamiliesOfPuts(t *testing.T) {
	server := newDualServer(t)
	send := func(method, path string, s *corev1.Service) answer {
		t.Helper()
		body, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return call{method: method, path: path, body: string(body)}.do(t, server)
	}
	for i, c := range familyChanges() {
		name := fmt.Sprint("s", i)
		if made := send("POST", svcPath, c.service(name, policyFor(c.had), c.had)); made.code != 201 {
			t.Fatalf("%+v: %d %s", c, made.code, made.body)
		}
		before := mustDo[corev1.Service](t, server, call{method: "GET", path: svcPath + "/" + name})
		free := map[corev1.IPFamily]string{corev1.IPv4Protocol: fmt.Sprint("10.96.77.", i+1), corev1.IPv6Protocol: fmt.Sprintf("fd96::%x", 0x7700+i)}
		put := send("PUT", svcPath+"/"+name, c.changed(before, free))
		after := mustDo[corev1.Service](t, server, call{method: "GET", path: svcPath + "/" + name})
		familiesOf(t, after)
		if want := c.want(); want == 0 && put.code != 422 || want != 0 && (put.code != 200 || len(after.Spec.IPFamilies) != want) {
			t.Errorf("%+v: %d %v, want %d: %s", c, put.code, after.Spec.IPFamilies, want, put.body)
		}
		if after.Spec.IPFamilies[0] != c.order[0] || after.Spec.ClusterIP != before.Spec.ClusterIP {
			t.Errorf("%+v: %v became %v", c, before.Spec.ClusterIPs, after.Spec.ClusterIPs)
		}
	}
}
