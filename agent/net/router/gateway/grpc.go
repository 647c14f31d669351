package gateway

import (
	"regexp"

	v1 "sigs.k8s.io/gateway-api/apis/v1"
)

// ofGRPC says what a GRPCRoute does in the words of an HTTPRoute: a method is the path of a POST.
func ofGRPC(r *v1.GRPCRoute) *route {
	made := &route{object: r, kind: GRPCRoute, parents: r.Spec.ParentRefs, hostnames: r.Spec.Hostnames}
	for i := range r.Spec.Rules {
		from := &r.Spec.Rules[i]
		rule := v1.HTTPRouteRule{Name: from.Name, Filters: filtersOfGRPC(from.Filters), SessionPersistence: from.SessionPersistence}
		for n := range from.Matches {
			rule.Matches = append(rule.Matches, matchOfGRPC(&from.Matches[n]))
		}
		for _, backend := range from.BackendRefs {
			rule.BackendRefs = append(rule.BackendRefs, v1.HTTPBackendRef{BackendRef: backend.BackendRef, Filters: filtersOfGRPC(backend.Filters)})
		}
		made.rules = append(made.rules, rule)
	}
	return made
}

func matchOfGRPC(m *v1.GRPCRouteMatch) v1.HTTPRouteMatch {
	var made v1.HTTPRouteMatch
	if m.Method != nil {
		made.Path = pathOfGRPC(m.Method)
	}
	for _, h := range m.Headers {
		header := v1.HTTPHeaderMatch{Name: v1.HTTPHeaderName(h.Name), Value: h.Value}
		if h.Type != nil {
			header.Type = new(v1.HeaderMatchType(*h.Type))
		}
		made.Headers = append(made.Headers, header)
	}
	return made
}

// pathOfGRPC is the path /service/method; what is not said is anything.
func pathOfGRPC(m *v1.GRPCMethodMatch) *v1.HTTPPathMatch {
	service, method := *orZero(m.Service), *orZero(m.Method)
	kind, path := v1.PathMatchExact, "/"+service+"/"+method
	switch expression := m.Type != nil && *m.Type == v1.GRPCMethodMatchRegularExpression; {
	case service == "" && method == "":
		return nil
	case expression || service == "":
		if !expression {
			method = regexp.QuoteMeta(method)
		}
		kind, path = v1.PathMatchRegularExpression, "/"+anyIfEmpty(service)+"/"+anyIfEmpty(method)+"$"
	case method == "":
		kind, path = v1.PathMatchPathPrefix, "/"+service
	}
	return &v1.HTTPPathMatch{Type: &kind, Value: &path}
}

func anyIfEmpty(expression string) string {
	if expression == "" {
		return "[^/]+"
	}
	return "(?:" + expression + ")"
}

func filtersOfGRPC(filters []v1.GRPCRouteFilter) (made []v1.HTTPRouteFilter) {
	for _, f := range filters {
		made = append(made, v1.HTTPRouteFilter{
			Type: v1.HTTPRouteFilterType(f.Type), RequestHeaderModifier: f.RequestHeaderModifier, ResponseHeaderModifier: f.ResponseHeaderModifier,
			RequestMirror: f.RequestMirror, ExtensionRef: f.ExtensionRef,
		})
	}
	return made
}
