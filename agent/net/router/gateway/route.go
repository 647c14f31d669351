package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/setpoint-io/setpoint/agent/net/router/hosts"
	"github.com/setpoint-io/setpoint/internal/gatewayapi"
)

// route is one of any kind. Rules are as those of HTTPRoutes: what a GRPCRoute says can be said so.
type route struct {
	object    metav1.Object
	kind      string
	parents   []v1.ParentReference
	hostnames []v1.Hostname
	rules     []v1.HTTPRouteRule
	// policies are those of each of its backends.
	policies [][]*policy
}

func ofHTTP(r *v1.HTTPRoute) *route {
	return &route{object: r, kind: HTTPRoute, parents: r.Spec.ParentRefs, hostnames: r.Spec.Hostnames, rules: r.Spec.Rules}
}

func (r *route) namespace() string { return r.object.GetNamespace() }

// route attaches one to its parents, and says what comes of it.
func (b *builder) route(r *route) {
	state := RouteState{Route: r.object}
	defer func() { b.result.Routes = append(b.result.Routes, state) }()
	ours := slices.DeleteFunc(slices.Clone(r.parents), func(ref v1.ParentReference) bool { return !b.isOurs(r, &ref) })
	if len(ours) == 0 {
		return
	}
	compiled, resolved, accepted := b.compile(r)
	for _, ref := range ours {
		to := b.parent[parentOf(r, &ref)]
		fault := b.attach(r, &ref, to.listeners, compiled)
		if !fault.any() {
			fault = accepted
			reached(types.NamespacedName{Namespace: to.gateway.Namespace, Name: to.gateway.Name}, r.policies)
		}
		state.Parents = append(state.Parents, v1.RouteParentStatus{
			ParentRef: ref, ControllerName: gatewayapi.Controller, Conditions: []metav1.Condition{
				fault.condition(string(v1.RouteConditionAccepted), string(v1.RouteReasonAccepted)),
				resolved.condition(string(v1.RouteConditionResolvedRefs), string(v1.RouteReasonResolvedRefs)),
			},
		})
	}
}

// isOurs tells whether a reference names a Gateway that is served here, or a ListenerSet of one.
func (b *builder) isOurs(r *route, ref *v1.ParentReference) bool {
	return b.parent[parentOf(r, ref)] != nil && (ref.Group == nil || *ref.Group == v1.GroupName)
}

func parentOf(r *route, ref *v1.ParentReference) parentKey {
	at := parentKey{"Gateway", r.namespace(), string(ref.Name)}
	if ref.Namespace != nil {
		at.namespace = string(*ref.Namespace)
	}
	if ref.Kind != nil {
		at.kind = string(*ref.Kind)
	}
	return at
}

// attach adds the route's rules to each listener that the reference means and that takes them. Otherwise it says why none does.
func (b *builder) attach(r *route, ref *v1.ParentReference, all []*listener, compiled []*rule) fault {
	allowing, wrong := b.allowing(r, ref, all)
	if wrong.any() {
		return wrong
	}
	attached, taken := false, ""
	for _, l := range allowing {
		names := intersect(l.hostname(), r.hostnames)
		free := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			by := b.taken(b.claim(l, name, r.object, r.kind))
			taken = cmp.Or(by, taken)
			return by != ""
		})
		if len(free) == 0 {
			continue
		}
		attached = true
		l.attached++
		b.serve(l, free, compiled)
	}
	switch {
	case attached:
		return fault{}
	case taken != "":
		return fault{hosts.Reason, taken}
	}
	return fault{string(v1.RouteReasonNoMatchingListenerHostname), "none of its hostnames is one of the listener's"}
}

// allowing are the listeners that the reference means and that take the route.
func (b *builder) allowing(r *route, ref *v1.ParentReference, all []*listener) ([]*listener, fault) {
	meant := slices.DeleteFunc(slices.Clone(all), func(l *listener) bool {
		return ref.SectionName != nil && *ref.SectionName != l.spec.Name || ref.Port != nil && *ref.Port != l.spec.Port
	})
	if len(meant) == 0 {
		return nil, fault{string(v1.RouteReasonNoMatchingParent), "it has no listener of that name and port"}
	}
	allowing := slices.DeleteFunc(meant, func(l *listener) bool { return !slices.Contains(l.kinds, r.kind) || !b.takes(l, r.namespace()) })
	if len(allowing) == 0 {
		return nil, fault{string(v1.RouteReasonNotAllowedByListeners), fmt.Sprintf("no listener takes a %s of this namespace", r.kind)}
	}
	return allowing, fault{}
}

// intersect are the names at which a route is served by a listener; "" is any name.
func intersect(listener string, hostnames []v1.Hostname) (names []string) {
	if len(hostnames) == 0 {
		return []string{listener}
	}
	for _, h := range hostnames {
		name := strings.ToLower(string(h))
		switch {
		case listener == "" || covers(listener, name):
			names = append(names, name)
		case covers(name, listener):
			names = append(names, listener)
		}
	}
	return names
}

// covers tells whether each host that b names is one that a names: "*.example.com" has all hosts below it, with any number of labels.
func covers(a, b string) bool {
	suffix, wild := strings.CutPrefix(a, "*")
	return a == b || wild && strings.HasSuffix(strings.TrimPrefix(b, "*"), suffix) && len(b) > len(suffix)
}
