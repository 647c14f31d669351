package gateway

import (
	"fmt"
	"net/http"

	v1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/setpoint-io/setpoint/agent/net/router/table"
)

// change is what filters do, in their order. The prefixes of paths are known later.
func (b *builder) change(r *route, filters []v1.HTTPRouteFilter) (*table.Change, fault) {
	made := &table.Change{}
	rewrites := false
	for i := range filters {
		f := &filters[i]
		switch {
		case f.Type == v1.HTTPRouteFilterRequestHeaderModifier && f.RequestHeaderModifier != nil:
			made.Request = append(made.Request, headers(f.RequestHeaderModifier))
		case f.Type == v1.HTTPRouteFilterResponseHeaderModifier && f.ResponseHeaderModifier != nil:
			made.Answer = append(made.Answer, headers(f.ResponseHeaderModifier))
		case f.Type == v1.HTTPRouteFilterRequestRedirect && f.RequestRedirect != nil:
			made.Redirect = redirect(f.RequestRedirect)
		case f.Type == v1.HTTPRouteFilterURLRewrite && f.URLRewrite != nil:
			rewrites = true
			made.Host, made.Path = string(*orZero(f.URLRewrite.Hostname)), path(f.URLRewrite.Path)
		case f.Type == v1.HTTPRouteFilterCORS && f.CORS != nil:
			made.CORS = cors(f.CORS)
		case f.Type == v1.HTTPRouteFilterRequestMirror && f.RequestMirror != nil:
			mirror, wrong := b.mirror(r, f.RequestMirror)
			if wrong.any() {
				return made, wrong
			}
			if !mirror.Backend.Refused {
				made.Mirrors = append(made.Mirrors, mirror)
			}
		case f.Type == v1.HTTPRouteFilterExtensionRef:
			return made, fault{string(v1.RouteReasonInvalidKind), "there are no filters of other kinds here"}
		default:
			return made, fault{string(v1.RouteReasonUnsupportedValue), fmt.Sprintf("the filter %s is not honoured here", f.Type)}
		}
	}
	if rewrites && made.Redirect != nil {
		return made, fault{string(v1.RouteReasonIncompatibleFilters), "a request cannot be redirected and rewritten"}
	}
	return made, fault{}
}

func headers(f *v1.HTTPHeaderFilter) table.Headers {
	made := table.Headers{Remove: f.Remove}
	for _, h := range f.Set {
		made.Set = append(made.Set, [2]string{string(h.Name), h.Value})
	}
	for _, h := range f.Add {
		made.Add = append(made.Add, [2]string{string(h.Name), h.Value})
	}
	return made
}

func redirect(f *v1.HTTPRequestRedirectFilter) *table.Redirect {
	made := &table.Redirect{
		Code: http.StatusFound, Scheme: *orZero(f.Scheme), Host: string(*orZero(f.Hostname)), Port: int(*orZero(f.Port)), Path: path(f.Path),
	}
	if f.StatusCode != nil {
		made.Code = *f.StatusCode
	}
	return made
}

// path is a change of it; ofPrefix says which prefix.
func path(m *v1.HTTPPathModifier) *table.PathChange {
	switch {
	case m == nil:
		return nil
	case m.Type == v1.FullPathHTTPPathModifier:
		return &table.PathChange{Whole: true, By: *orZero(m.ReplaceFullPath)}
	}
	return &table.PathChange{By: *orZero(m.ReplacePrefixMatch)}
}

func cors(f *v1.HTTPCORSFilter) *table.CORS {
	made := &table.CORS{Credentials: *orZero(f.AllowCredentials), MaxAge: int(f.MaxAge)}
	for _, o := range f.AllowOrigins {
		made.Origins = append(made.Origins, string(o))
	}
	for _, m := range f.AllowMethods {
		made.Methods = append(made.Methods, string(m))
	}
	for _, h := range f.AllowHeaders {
		made.Headers = append(made.Headers, string(h))
	}
	for _, h := range f.ExposeHeaders {
		made.Expose = append(made.Expose, string(h))
	}
	return made
}

func (b *builder) mirror(r *route, f *v1.HTTPRequestMirrorFilter) (table.Mirror, fault) {
	made := table.Mirror{Numerator: 1, Denominator: 1}
	switch {
	case f.Percent != nil:
		made.Numerator, made.Denominator = *f.Percent, 100
	case f.Fraction != nil:
		made.Numerator, made.Denominator = f.Fraction.Numerator, 100
		if f.Fraction.Denominator != nil {
			made.Denominator = max(*f.Fraction.Denominator, 1)
		}
	}
	var wrong fault
	made.Backend, wrong = b.backend(r, &f.BackendRef)
	return made, wrong
}

// both does what the rule says, then what the backend does.
func both(rule, own *table.Change) *table.Change {
	made := *rule
	made.Request = append(made.Request[:len(made.Request):len(made.Request)], own.Request...)
	made.Answer = append(made.Answer[:len(made.Answer):len(made.Answer)], own.Answer...)
	made.Mirrors = append(made.Mirrors[:len(made.Mirrors):len(made.Mirrors)], own.Mirrors...)
	if own.Host != "" {
		made.Host = own.Host
	}
	if own.Path != nil {
		made.Path = own.Path
	}
	if own.CORS != nil {
		made.CORS = own.CORS
	}
	return &made
}

// ofPrefix is the route for a match of that prefix.
func ofPrefix(r *table.Route, prefix string) *table.Route {
	if r.Change == nil || !replaces(r.Change.Path) && (r.Change.Redirect == nil || !replaces(r.Change.Redirect.Path)) {
		return r
	}
	made, change := *r, *r.Change
	if replaces(change.Path) {
		change.Path = &table.PathChange{Prefix: prefix, By: change.Path.By}
	}
	if change.Redirect != nil && replaces(change.Redirect.Path) {
		to := *change.Redirect
		to.Path = &table.PathChange{Prefix: prefix, By: to.Path.By}
		change.Redirect = &to
	}
	made.Change = &change
	return &made
}

func replaces(p *table.PathChange) bool { return p != nil && !p.Whole }
