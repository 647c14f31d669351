package nettrace

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/clusterdns"
	"github.com/setpoint-io/setpoint/internal/nodefirewall"
)

// TestAFirewallOfTheMachine stops what its agent has found stopped, and perhaps what is near to it; once it is gone all arrives.
func TestAFirewallOfTheMachine(t *testing.T) {
	input := nodefirewall.Problem{Input: true, What: "no DNS: ufw, it seems", Command: "ufw allow from 10.42.0.0/16"}
	forwarding := nodefirewall.Problem{Forwarding: true, What: "nothing beyond it: nftables, it seems"}
	for name, c := range map[string]struct {
		node    string
		problem nodefirewall.Problem
		to      string
		want    Verdict
	}{
		"a name":                             {"a", input, "web:80", Stops},
		"an address needs no name":           {"a", input, "10.96.0.7", Arrives},
		"the DNS itself":                     {"a", input, "10.96.0.10:53/udp", Stops},
		"another port of the machine":        {"a", input, "192.0.2.1:6443", Unsure},
		"a port of another machine":          {"b", input, "192.0.2.2:6443", Unsure},
		"names are asked of the own machine": {"b", input, "web:80", Arrives},
		"a pod of another node":              {"a", forwarding, "service/web", Stops},
		"another machine":                    {"a", forwarding, "192.0.2.2:6443", Stops},
		"the outside":                        {"a", forwarding, "203.0.113.7:443", Stops},
		"a pod of the same node":             {"a", forwarding, "10.42.0.3:8080", Unsure},
		"the own machine":                    {"a", forwarding, "192.0.2.1:6443", Arrives},
	} {
		t.Run(name, func(t *testing.T) {
			w := shop()
			w.Services = append(w.Services, service(metav1.NamespaceSystem, clusterdns.Service, "10.96.0.10", nil))
			w.service(clusterdns.Service).Labels = map[string]string{clusterdns.ProxyLabel: clusterdns.ProxyName}
			if got := trace(t, w, "client", c.to); got.Verdict != Arrives {
				t.Errorf("without a problem: %+v", got)
			}
			w.node(c.node).Status.Conditions = []corev1.NodeCondition{c.problem.Condition()}
			got := trace(t, w, "client", c.to)
			if got.Verdict != c.want {
				t.Errorf("%+v, want %s", got, c.want)
			}
			if c.want != Arrives && (got.Why != "node/"+c.node+": "+c.problem.What || !strings.Contains(got.Change, c.problem.Command)) {
				t.Errorf("%s, change %s", got.Why, got.Change)
			}
			w.Pods[0].Spec.HostNetwork = true
			if got := trace(t, w, "client", c.to); strings.Contains(got.Why, c.problem.What) {
				t.Errorf("a pod on the machine's network: %+v", got)
			}
		})
	}
}
