package admission

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/setpoint-io/setpoint/internal/reserved"
)

// bookOfServer has one server at these addresses.
func bookOfServer(addresses ...string) *reserved.Book {
	m := reserved.Machine{Name: "server s1", Ports: map[reserved.Port]reserved.Use{}}
	for _, text := range addresses {
		m.Addresses = append(m.Addresses, netip.MustParseAddr(text))
	}
	book := reserved.New()
	book.SetServers([]reserved.Machine{m})
	return book
}

// podAddressWorld has a node a with addresses and ranges, one without, and others.
func podAddressWorld(t *testing.T) nodeRestriction {
	t.Helper()
	node := func(name string, ranges []string, addresses ...string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: named(name), Spec: corev1.NodeSpec{PodCIDRs: ranges}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		for _, ip := range addresses {
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
		}
		return n
	}
	away := node("gone", nil, "192.0.2.3")
	away.Status.Conditions = nil
	w := newWorld(t, allowAll, away, node("new", nil),
		node("a", []string{"10.42.0.0/24", "fd42:0:0:0::/64"}, "192.0.2.1", "2001:db8::1"),
		node("b", []string{"10.42.1.0/24", "fd42:0:0:1::/64"}, "192.0.2.2", "2001:db8::2"),
		&networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/16"}}})
	return newNodeRestriction(w.store, nil, bookOfServer("192.0.2.9", "2001:db8::9"))
}

// podClaim is what a node says of its pod that had the address 203.0.113.5 at the host 203.0.113.6.
type podClaim struct {
	node        string
	hostNetwork bool
	ips         []string
	host        string
	words       string
}

func (c podClaim) pod() *corev1.Pod {
	return podNamed("p", func(p *corev1.Pod) {
		p.Spec.NodeName, p.Spec.HostNetwork, p.Status.HostIP, p.Status.PodIP = c.node, c.hostNetwork, c.host, c.ips[0]
		p.Status.HostIPs = []corev1.HostIP{{IP: c.host}}
		for _, ip := range c.ips {
			p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: ip})
		}
	})
}

func (c podClaim) judge(t *testing.T, r nodeRestriction, who user.Info) error {
	t.Helper()
	was := podClaim{c.node, c.hostNetwork, []string{"203.0.113.5"}, "203.0.113.6", ""}
	return r.Admit(t.Context(), admission.NewAttributesRecord(c.pod(), was.pod(), schema.GroupVersionKind{}, "ns", "p",
		corev1.SchemeGroupVersion.WithResource("pods"), "status", admission.Update, nil, false, who), nil)
}

// TestANodeTellsItsOwnPodsAddresses: a Service of that pod would open what has the address.
func TestANodeTellsItsOwnPodsAddresses(t *testing.T) {
	r := podAddressWorld(t)
	pod := func(words string, ips ...string) podClaim { return podClaim{"a", false, ips, "192.0.2.1", words} }
	onHost := func(words string, ips ...string) podClaim { return podClaim{"a", true, ips, "192.0.2.1", words} }
	early := func(words string, ips ...string) podClaim { return podClaim{"new", true, ips, "192.0.2.7", words} }
	const lonely = "it is no address at which others reach a pod"
	for name, c := range map[string]podClaim{
		"of its range":                  pod("", "10.42.0.7", "fd42::7"),
		"of a network of its runtime":   pod("", "10.88.0.7"),
		"has none yet":                  pod("", ""),
		"as it was":                     {"a", false, []string{"203.0.113.5"}, "203.0.113.6", ""},
		"another node's":                pod(`node "a" is not allowed to say that its pod ns/p has the address "192.0.2.2": node "b" has it`, "192.0.2.2"),
		"another node's, second":        pod(`"2001:db8::2": node "b" has it`, "10.42.0.7", "2001:db8::2"),
		"another node's, written so":    pod(`node "b" has it`, "::ffff:192.0.2.2"),
		"another node's, with a zone":   pod(`node "b" has it`, "2001:db8::2%eth0"),
		"of a node that is away":        pod(`node "gone" has it`, "192.0.2.3"),
		"its node's":                    pod(`node "a" has it`, "192.0.2.1"),
		"a server's":                    pod("server s1 has it", "192.0.2.9"),
		"a pod's of another node":       pod(`pods of node "b" have addresses there`, "10.42.1.7"),
		"its second one is":             pod(`pods of node "b" have addresses there`, "10.42.0.7", "fd42:0:0:1::7"),
		"a Service's":                   pod(`Services of ServiceCIDR "kubernetes" have addresses there`, "10.96.0.10"),
		"loopback":                      pod(lonely, "127.0.0.1"),
		"any":                           pod(lonely, "0.0.0.0"),
		"link-local":                    pod(lonely, "169.254.169.254"),
		"a group's":                     pod(lonely, "224.0.0.1"),
		"no address":                    pod("unable to parse IP", "b"),
		"of its node":                   onHost("", "192.0.2.1", "2001:db8::1"),
		"of its node, and another":      onHost("the pod has the network of its node", "192.0.2.1", "2001:db8::2"),
		"of another node":               onHost("the pod has the network of its node", "192.0.2.2"),
		"elsewhere":                     onHost("the pod has the network of its node", "8.8.8.8"),
		"of a range, on its node":       onHost("the pod has the network of its node", "10.42.0.7"),
		"a node that has told nothing":  early("", "192.0.2.7"),
		"of a server of that machine":   early("", "127.0.0.1"),
		"nothing told, another node's":  early(`node "b" has it, and is Ready`, "192.0.2.2"),
		"nothing told, a Service's":     early(`Services of ServiceCIDR "kubernetes"`, "10.96.0.10"),
		"a node that is not registered": {"missing", false, []string{"192.0.2.2"}, "", `node "b" has it`},
		"at another host":               {"a", false, []string{"10.42.0.7"}, "192.0.2.2", `the host of its pod ns/p has the address "192.0.2.2": the node does not say`},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, c.judge(t, r, &user.DefaultInfo{Name: "system:node:" + c.node, Groups: []string{"system:nodes"}}), c.words)
			check(t, c.judge(t, r, someone), "")
		})
	}
}
