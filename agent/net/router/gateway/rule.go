package gateway

import (
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/setpoint-io/setpoint/agent/net/router/table"
	"github.com/setpoint-io/setpoint/internal/gatewayapi"
)

// timeoutMax is for a timeout of 0, which is none by the API.
const timeoutMax = time.Hour

// rule is one of a route, ready to be served.
type rule struct {
	matches []*match
}

// compile makes the rules of a route. A rule that is not right answers 500, and resolved or accepted says why.
func (b *builder) compile(r *route) (rules []*rule, resolved, accepted fault) {
	for i := range r.rules {
		spec := &r.rules[i]
		change, err := b.change(r, spec.Filters)
		if spec.Retry != nil || spec.SessionPersistence != nil {
			err = fault{string(v1.RouteReasonUnsupportedValue), "retry and sessionPersistence are not honoured here"}
		}
		if err.any() {
			keep(&resolved, &accepted, err)
		}
		timeouts(spec.Timeouts, change)
		var shares []share
		for n := range spec.BackendRefs {
			made, wrong := b.share(r, &spec.BackendRefs[n], change, spec.Timeouts)
			keep(&resolved, &accepted, wrong)
			if made.weight > 0 {
				shares = append(shares, made)
			}
		}
		name := types.NamespacedName{Namespace: r.namespace(), Name: r.object.GetName()}
		switch {
		case err.any():
			shares = []share{{weight: 1, route: &table.Route{Ingress: name, Kind: r.kind, Code: http.StatusInternalServerError}}}
		case change.Redirect != nil:
			shares = []share{{weight: 1, route: &table.Route{Ingress: name, Kind: r.kind, Change: change}}}
		case len(shares) == 0:
			shares = []share{{weight: 1, route: &table.Route{Ingress: name, Kind: r.kind, Change: change, Code: http.StatusInternalServerError}}}
		}
		matches, wrong := matchesOf(spec.Matches, shares)
		keep(&resolved, &accepted, wrong)
		rules = append(rules, &rule{matches: matches})
	}
	return rules, resolved, accepted
}

// keep remembers the first fault of each condition.
func keep(resolved, accepted *fault, f fault) {
	into := resolved
	switch v1.RouteConditionReason(f.reason) {
	case v1.RouteReasonUnsupportedValue, v1.RouteReasonIncompatibleFilters:
		into = accepted
	}
	if f.any() && !into.any() {
		*into = f
	}
}

// share is a backend with its weight.
type share struct {
	weight int
	route  *table.Route
}

// share makes the route to a backend; one that cannot be used answers 500, with its weight.
func (b *builder) share(r *route, ref *v1.HTTPBackendRef, change *table.Change, limits *v1.HTTPRouteTimeouts) (share, fault) {
	made := share{weight: 1}
	if ref.Weight != nil {
		made.weight = int(*ref.Weight)
	}
	made.route = &table.Route{
		Ingress: types.NamespacedName{Namespace: r.namespace(), Name: r.object.GetName()}, Kind: r.kind, Change: change, Options: options(limits),
	}
	own, wrong := b.change(r, ref.Filters)
	if !wrong.any() {
		made.route.Change = both(change, own)
		made.route.Backend, wrong = b.backend(r, &ref.BackendObjectReference)
	}
	switch {
	case wrong.any():
		made.route.Code = http.StatusInternalServerError
	case made.route.Backend.Refused && r.kind != TLSRoute: // there it depends on the listener
		made.route.Code = http.StatusBadGateway
	}
	return made, wrong
}

type backendKey struct {
	namespace, name string
	port            int32
	protocol        table.Protocol
}

// backend is one with the policies for it.
type backend struct {
	*table.Backend
	policies []*policy
}

// backend is the port of a Service that a reference names; nil with a fault if it may not be used.
func (b *builder) backend(r *route, ref *v1.BackendObjectReference) (*table.Backend, fault) {
	to := gatewayapi.Reference{
		FromKind: r.kind, FromNamespace: r.namespace(), ToKind: "Service", ToNamespace: r.namespace(), ToName: string(ref.Name),
	}
	if ref.Namespace != nil {
		to.ToNamespace = string(*ref.Namespace)
	}
	name := to.ToNamespace + "/" + to.ToName
	switch {
	case ref.Group != nil && *ref.Group != "" || ref.Kind != nil && *ref.Kind != "Service" || ref.Port == nil:
		return nil, fault{string(v1.RouteReasonInvalidKind), fmt.Sprintf("the backend %s is no Service with a port", name)}
	case !gatewayapi.Permitted(b.Grants, to):
		return nil, fault{string(v1.RouteReasonRefNotPermitted), fmt.Sprintf("Service %s: no ReferenceGrant of its namespace permits it", name)}
	}
	key := backendKey{to.ToNamespace, to.ToName, *ref.Port, ""}
	if r.kind == GRPCRoute {
		key.protocol = table.H2C
	}
	made := b.backends[key]
	if made == nil {
		made = b.newBackend(key)
		b.backends[key] = made
	}
	r.policies = append(r.policies, made.policies)
	if made.Missing != "" {
		return nil, fault{string(v1.RouteReasonBackendNotFound), fmt.Sprintf("Service %s: %s", name, made.Missing)}
	}
	return made.Backend, fault{}
}

func (b *builder) newBackend(key backendKey) *backend {
	service := b.Service(key.namespace, key.name)
	made := &backend{Backend: table.NewBackend(
		service, key.namespace, key.name, networkingv1.ServiceBackendPort{Number: key.port}, key.protocol, b.Slices,
	)}
	if made.Missing != "" {
		return made
	}
	made.policies = b.policiesOf(key.namespace, key.name, portName(service, key.port))
	if len(made.policies) > 0 {
		made.TLS = made.policies[0].tls
		made.Refused = made.TLS == nil
	}
	return made
}

func portName(service *corev1.Service, number int32) string {
	for _, p := range service.Spec.Ports {
		if p.Port == number && (p.Protocol == corev1.ProtocolTCP || p.Protocol == "") {
			return p.Name
		}
	}
	return ""
}

// timeouts adds how long the whole request may take.
func timeouts(limits *v1.HTTPRouteTimeouts, change *table.Change) {
	if limits != nil && limits.Request != nil {
		change.Timeout = duration(*limits.Request)
	}
}

// options are how long a backend may take until it begins to answer.
func options(limits *v1.HTTPRouteTimeouts) table.Options {
	o := table.Options{ConnectTimeout: table.DefaultConnectTimeout, ReadTimeout: table.DefaultReadTimeout}
	if limits != nil && limits.BackendRequest != nil {
		o.ReadTimeout = duration(*limits.BackendRequest)
	} else if limits != nil && limits.Request != nil {
		o.ReadTimeout = max(o.ReadTimeout, duration(*limits.Request))
	}
	return o
}

// duration is of GEP-2257, which is a part of Go's; the schema has judged it. 0 is no limit, which is an hour here.
func duration(d v1.Duration) time.Duration {
	parsed, err := time.ParseDuration(string(d))
	if err != nil || parsed <= 0 {
		return timeoutMax
	}
	return min(parsed, timeoutMax)
}
