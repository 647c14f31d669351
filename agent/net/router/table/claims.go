package table

import (
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/setpoint-io/setpoint/agent/net/router/hosts"
)

// Claims are the hosts that Ingresses name in rules. Who names one in its TLS only has no claim to it.
func Claims(ingresses []*networkingv1.Ingress) (all []hosts.Claim) {
	for _, i := range ingresses {
		for _, rule := range i.Spec.Rules {
			all = append(all, claim(i, rule.Host))
		}
	}
	return all
}

func claim(i *networkingv1.Ingress, host string) hosts.Claim {
	return hosts.Claim{Host: hosts.Host(strings.ToLower(host)), Kind: "Ingress", Object: i}
}

// taken tells, and says to the owner, that the host is another namespace's.
func (b *builder) taken(i *networkingv1.Ingress, host string) bool {
	c := claim(i, host)
	by, taken := b.Hosts.Taken(c)
	if taken {
		b.problem(i, hosts.Reason, "%s", c.Message(by))
	}
	return taken
}
