package gateway

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/net/router/hosts"
)

// Loss is what somebody had and has no more.
type Loss struct {
	// Thing is a host or a port, as the beginning of a sentence.
	Thing string
	// Holder had it, such as "HTTPRoute b/web".
	Holder string
	// By has it now, nil if that is not known.
	By metav1.Object
}

// Losses are what namespaces other than the one lose between two results whose difference is one object of it: hosts and ports that they
// had and still want. What is attached to one Gateway is the Gateway's affair: nobody loses there what he does not claim any more, nor a
// match to an older route. How nodes divide their ports is no loss either.
func Losses(before, after *Result, namespace string) []Loss {
	all := before.lostHosts(after, namespace)
	if len(all) == 0 {
		all = before.lostPorts(after, namespace)
	}
	return all
}

// claimKey is a claim whichever result it is of.
type claimKey struct {
	port                  int
	host                  hosts.Host
	kind, namespace, name string
}

func keyOfClaim(c hosts.Claim) claimKey {
	return claimKey{c.Port, c.Host, c.Kind, c.Object.GetNamespace(), c.Object.GetName()}
}

func (r *Result) lostHosts(after *Result, namespace string) (all []Loss) {
	wanted := map[claimKey]bool{}
	for _, c := range after.claims {
		wanted[keyOfClaim(c)] = true
	}
	for _, c := range r.claims {
		if c.Object.GetNamespace() == namespace || !wanted[keyOfClaim(c)] || !r.Hosts.Has(c) {
			continue
		}
		if by, taken := after.Hosts.Taken(c); taken {
			all = append(all, Loss{Thing: c.Thing(), Holder: c.String(), By: by.Object})
		}
	}
	return all
}

// listenerKey is a listener whichever result it is of.
type listenerKey struct{ kind, namespace, object, name string }

func keyOfListener(l *listener) listenerKey {
	return listenerKey{l.kind(), l.object().GetNamespace(), l.object().GetName(), string(l.spec.Name)}
}

func (r *Result) lostPorts(after *Result, namespace string) (all []Loss) {
	was := map[listenerKey]*listener{}
	for _, l := range r.listeners {
		was[keyOfListener(l)] = l
	}
	for _, l := range after.listeners {
		old, own := was[keyOfListener(l)], l.object().GetNamespace() == namespace
		switch {
		case own && l.beside != nil && l.beside.Namespace != namespace && (old == nil || old.beside != l.beside):
			all = append(all, Loss{portThing(l), fmt.Sprintf("Service %s/%s", l.beside.Namespace, l.beside.Name), l.object()})
		case !own && old != nil && old.served() && !l.served() && !l.divided && sameListener(old, l):
			all = append(all, Loss{Thing: portThing(l), Holder: fmt.Sprintf("listener %s of %s %s/%s",
				l.spec.Name, l.kind(), l.object().GetNamespace(), l.object().GetName())})
		}
	}
	return all
}

// sameListener: one that is of another Gateway now, or at another of its node ports, has not lost its place to somebody.
func sameListener(a, b *listener) bool { return a.number == b.number && a.own == b.own }

func portThing(l *listener) string {
	if l.own {
		return fmt.Sprintf("port %d of Gateway %s/%s", l.spec.Port, l.gateway.Namespace, l.gateway.Name)
	}
	return fmt.Sprintf("port %d of the nodes", l.spec.Port)
}
