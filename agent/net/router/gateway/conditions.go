package gateway

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/gateway-api/apis/v1"
)

// conclude says what comes of the Gateways and ListenerSets, once the routes are known.
func (b *builder) conclude() {
	added := map[*v1.Gateway][]*parent{}
	for _, p := range b.sets {
		state := p.state()
		b.result.Sets = append(b.result.Sets, state)
		if meta.IsStatusConditionTrue(state.Conditions, string(v1.ListenerSetConditionAccepted)) {
			added[p.gateway] = append(added[p.gateway], p)
		}
	}
	for _, g := range b.ordered {
		own := b.parent[keyOf("Gateway", g)]
		state := GatewayState{Gateway: g, Sets: int32(len(added[g])), Ports: portsOf(append([]*parent{own}, added[g]...))}
		accepted, whole := false, true
		for _, l := range own.listeners {
			state.Listeners = append(state.Listeners, l.status())
			right := !l.accepted.any() && !l.conflicted.any()
			accepted, whole = accepted || right, whole && right
		}
		state.Conditions = []metav1.Condition{acceptedOf(g, accepted, whole)}
		b.result.Gateways = append(b.result.Gateways, state)
	}
}

// portsOf are the ports of listeners, each once.
func portsOf(parents []*parent) (numbers []int32) {
	for _, p := range parents {
		for _, l := range p.listeners {
			if !slices.Contains(numbers, l.spec.Port) {
				numbers = append(numbers, l.spec.Port)
			}
		}
	}
	return numbers
}

// refused says what is asked of a Gateway that is not honoured; none of its listeners is served then.
func refused(g *v1.Gateway) fault {
	switch {
	case g.Spec.Infrastructure != nil && g.Spec.Infrastructure.ParametersRef != nil:
		return fault{string(v1.GatewayReasonInvalidParameters), "there are no parameters of infrastructure here"}
	case g.Spec.TLS != nil && g.Spec.TLS.Backend != nil:
		return fault{string(v1.GatewayReasonInvalidParameters), "no certificate is shown to backends here"}
	case slices.ContainsFunc(g.Spec.Addresses, func(a v1.GatewaySpecAddress) bool { return a.Value != "" || *ipIfNil(a.Type) != v1.IPAddressType }):
		return fault{string(v1.GatewayReasonUnsupportedAddress), "Gateways are served at the addresses of the nodes; no others can be had"}
	}
	return fault{}
}

func ipIfNil(t *v1.AddressType) *v1.AddressType {
	if t == nil {
		return new(v1.IPAddressType)
	}
	return t
}

// acceptedOf: a Gateway is accepted if one of its listeners is.
func acceptedOf(g *v1.Gateway, accepted, whole bool) metav1.Condition {
	const kind = string(v1.GatewayConditionAccepted)
	switch f := refused(g); {
	case f.any():
		return condition(kind, false, f.reason, f.message)
	case !whole:
		return condition(kind, accepted, string(v1.GatewayReasonListenersNotValid), "some listeners are not accepted: their conditions say why")
	}
	return condition(kind, true, string(v1.GatewayReasonAccepted), "")
}

func (l *listener) status() v1.ListenerStatus {
	status := v1.ListenerStatus{Name: l.spec.Name, AttachedRoutes: l.attached, SupportedKinds: []v1.RouteGroupKind{}}
	for _, kind := range l.kinds {
		group := v1.Group(v1.GroupName)
		status.SupportedKinds = append(status.SupportedKinds, v1.RouteGroupKind{Group: &group, Kind: v1.Kind(kind)})
	}
	programmed := fault{}
	if l.conflicted.any() {
		programmed = l.conflicted
	} else if l.accepted.any() || l.resolved.any() {
		programmed = fault{string(v1.ListenerReasonInvalid), "other conditions say why"}
	} else if l.number == 0 {
		programmed = fault{string(v1.ListenerReasonPending), "the Gateway's Service has no node port for it"}
	}
	conflicted := condition(string(v1.ListenerConditionConflicted), false, string(v1.ListenerReasonNoConflicts), "")
	if l.conflicted.any() {
		conflicted = condition(string(v1.ListenerConditionConflicted), true, l.conflicted.reason, l.conflicted.message)
	}
	accepted := l.accepted
	if !accepted.any() {
		accepted = l.conflicted
	}
	status.Conditions = []metav1.Condition{
		accepted.condition(string(v1.ListenerConditionAccepted), string(v1.ListenerReasonAccepted)), conflicted,
		programmed.condition(string(v1.ListenerConditionProgrammed), string(v1.ListenerReasonProgrammed)),
		l.resolved.condition(string(v1.ListenerConditionResolvedRefs), string(v1.ListenerReasonResolvedRefs)),
	}
	return status
}

// condition is true, with the reason that is good, if nothing is wrong.
func (f fault) condition(kind, good string) metav1.Condition {
	if f.any() {
		return condition(kind, false, f.reason, f.message)
	}
	return condition(kind, true, good, "")
}
