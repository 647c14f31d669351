package gateway

import (
	v1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/setpoint-io/setpoint/agent/net/router/hosts"
	"github.com/setpoint-io/setpoint/agent/net/router/table"
)

// Mode is what becomes of the connections to a listener with TLS.
type Mode int

// The modes of listeners.
const (
	// HTTP: TLS ends here, and each request is routed.
	HTTP Mode = iota
	// Terminate: TLS ends here, and what it carries is copied to a backend.
	Terminate
	// Passthrough: the connection is copied to a backend as it is.
	Passthrough
)

func (l *listener) mode() Mode {
	switch {
	case l.spec.Protocol != v1.TLSProtocolType:
		return HTTP
	case l.spec.TLS != nil && l.spec.TLS.Mode != nil && *l.spec.TLS.Mode == v1.TLSModePassthrough:
		return Passthrough
	}
	return Terminate
}

// ofTLS says what a TLSRoute does in the words of an HTTPRoute: its rules have no matches, so of each hostname the first decides.
func ofTLS(r *v1.TLSRoute) *route {
	made := &route{object: r, kind: TLSRoute, parents: r.Spec.ParentRefs, hostnames: r.Spec.Hostnames}
	for i := range r.Spec.Rules {
		from := &r.Spec.Rules[i]
		rule := v1.HTTPRouteRule{Name: from.Name}
		for _, backend := range from.BackendRefs {
			rule.BackendRefs = append(rule.BackendRefs, v1.HTTPBackendRef{BackendRef: backend})
		}
		made.rules = append(made.rules, rule)
	}
	return made
}

// Stream says what becomes of a connection for a server name, which the listeners with the most specific hostname decide. The route is
// that of a connection that is copied, nil if there is none, and at the hostname that it is for. A name for which there is no listener is
// not known.
func (p *Port) Stream(serverName string) (mode Mode, to *table.Route, at hosts.Host, known bool) {
	name := lower(serverName)
	known = p.sites.each(name, func(s *site) bool {
		if mode, at = s.mode, hosts.Host(s.name); mode == HTTP {
			return true
		}
		s.hosts.each(name, func(h *host) bool {
			if all := h.prefix[""]; len(all) > 0 {
				to, at = all[0].choose(), hosts.Host(h.name)
			}
			return true
		})
		return true
	})
	return mode, to, at, known
}
