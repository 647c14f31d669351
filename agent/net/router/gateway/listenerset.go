package gateway

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/setpoint-io/setpoint/internal/gatewayapi"
)

// listenersMax is how many listeners a Gateway has, with those of its ListenerSets.
const listenersMax = 512

// parent is what a route attaches to: a Gateway or a ListenerSet, with its own listeners.
type parent struct {
	gateway   *v1.Gateway
	set       *v1.ListenerSet // nil: it is the Gateway
	listeners []*listener
	// fault says why a ListenerSet may not add to the Gateway.
	fault fault
}

type parentKey struct{ kind, namespace, name string }

func keyOf(kind string, o metav1.Object) parentKey {
	return parentKey{kind, o.GetNamespace(), o.GetName()}
}

// setsOf are the ListenerSets that name a Gateway, the oldest first.
func (b *builder) setsOf(g *v1.Gateway) (found []*v1.ListenerSet) {
	for _, set := range b.ListenerSets {
		namespace, name := gatewayapi.GatewayOf(set)
		if namespace == g.Namespace && name == g.Name && set.DeletionTimestamp == nil {
			found = append(found, set)
		}
	}
	slices.SortFunc(found, func(a, b *v1.ListenerSet) int { return older(a, b) })
	return found
}

// listeners makes those of the Gateway and its ListenerSets, in the order of precedence: of listeners that conflict, the first stays.
func (b *builder) listeners(g *v1.Gateway) {
	own := &parent{gateway: g}
	for i := range g.Spec.Listeners {
		own.listeners = append(own.listeners, &listener{gateway: g, spec: &g.Spec.Listeners[i]})
	}
	b.parent[keyOf("Gateway", g)] = own
	all := []*parent{own}
	for _, set := range b.setsOf(g) {
		p := &parent{gateway: g, set: set}
		if b.allows(g, set.Namespace) {
			for i := range set.Spec.Listeners {
				p.listeners = append(p.listeners, &listener{gateway: g, set: set, spec: (*v1.Listener)(&set.Spec.Listeners[i])})
			}
		} else {
			p.fault = fault{string(v1.ListenerSetReasonNotAllowed), "the Gateway allows no ListenerSets of this namespace"}
		}
		b.parent[keyOf("ListenerSet", set)] = p
		all = append(all, p)
	}
	for _, p := range all {
		for _, l := range p.listeners {
			l.number, l.own = b.portOf(l)
			if l.known() {
				b.judgeKinds(l)
			}
		}
	}
	b.parents[g] = all
}

// allows tells whether ListenerSets of a namespace may add to the Gateway.
func (b *builder) allows(g *v1.Gateway, namespace string) bool {
	if g.Spec.AllowedListeners == nil || g.Spec.AllowedListeners.Namespaces == nil {
		return false
	}
	allowed := g.Spec.AllowedListeners.Namespaces
	return b.fromNamespace(*orZero(allowed.From), allowed.Selector, g.Namespace, namespace)
}

// SetState is what a ListenerSet's status says. Conditions have no times and generations.
type SetState struct {
	Set        *v1.ListenerSet
	Conditions []metav1.Condition
	Listeners  []v1.ListenerEntryStatus
}

func (p *parent) state() SetState {
	state := SetState{Set: p.set}
	accepted, whole := false, true
	for _, l := range p.listeners {
		state.Listeners = append(state.Listeners, v1.ListenerEntryStatus(l.status()))
		accepted, whole = accepted || l.served(), whole && l.served()
	}
	wrong, reason := p.fault, string(v1.ListenerSetReasonAccepted)
	switch f := refused(p.gateway); {
	case wrong.any():
	case f.any():
		wrong = fault{string(v1.ListenerSetReasonParentNotAccepted), "the Gateway is not accepted: " + f.message}
	case !accepted:
		wrong = fault{string(v1.ListenerSetReasonListenersNotValid), "no listener is accepted: their conditions say why"}
	case !whole:
		reason = string(v1.ListenerSetReasonListenersNotValid)
	}
	state.Conditions = []metav1.Condition{
		wrong.condition(string(v1.ListenerSetConditionAccepted), reason),
		wrong.condition(string(v1.ListenerSetConditionProgrammed), string(v1.ListenerSetReasonProgrammed)),
	}
	return state
}

// tooMany says what is wrong with a listener beyond listenersMax.
func tooMany() fault {
	return fault{string(v1.ListenerEntryReasonTooManyListeners), fmt.Sprintf("the Gateway and its ListenerSets have more than %d", listenersMax)}
}
