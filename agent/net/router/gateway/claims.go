package gateway

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/net/router/hosts"
)

// Taken is a claim to a host that somebody else has, and the message of its owner.
type Taken struct {
	hosts.Claim
	Message string
}

// claims are those of all listeners with a hostname, and of all routes at listeners that take them.
func (b *builder) claims(routes []*route) (all []hosts.Claim) {
	for _, g := range b.ordered {
		for _, p := range b.parents[g] {
			for _, l := range p.listeners {
				if l.hostname() != "" && l.known() && !refused(g).any() {
					all = append(all, b.claim(l, l.hostname(), l.object(), l.kind()))
				}
			}
		}
	}
	for _, r := range routes {
		for i := range r.parents {
			if !b.isOurs(r, &r.parents[i]) {
				continue
			}
			to := b.parent[parentOf(r, &r.parents[i])]
			allowing, _ := b.allowing(r, &r.parents[i], to.listeners)
			for _, l := range allowing {
				for _, name := range intersect(l.hostname(), r.hostnames) {
					all = append(all, b.claim(l, name, r.object, r.kind))
				}
			}
		}
	}
	return all
}

// claim is that of an object which is served by the listener. Ports where Ingresses are served are one place for all of them.
func (b *builder) claim(l *listener, name string, o metav1.Object, kind string) hosts.Claim {
	c := hosts.Claim{Port: l.number, Host: hosts.Host(name), Kind: kind, Object: o, Gateway: l.gateway.Namespace}
	if _, shared := b.Shared[l.number]; shared && !l.own {
		c.Port = 0
	}
	return c
}

// taken says who has the host of the claim, and records it; "" if nobody else does.
func (b *builder) taken(c hosts.Claim) string {
	by, taken := b.result.Hosts.Taken(c)
	if !taken {
		return ""
	}
	message := c.Message(by)
	b.result.Taken = append(b.result.Taken, Taken{c, message})
	return message
}

// kind is that of the listener's object.
func (l *listener) kind() string {
	if l.set != nil {
		return "ListenerSet"
	}
	return "Gateway"
}
