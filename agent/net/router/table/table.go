package table

import (
	"crypto/tls"
	"path"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/net/router/hosts"
)

// Table is what is served at one moment.
type Table struct {
	// hosts are by name, those of wildcards by what follows "*.", that of rules without a host is "".
	exact, wildcard map[string]*host
	any             *host
	// fallback is for whatever nobody else claims.
	fallback *Route
	// certificates are by host, also by "*.example.com".
	certificates map[string]*tls.Certificate
}

// Route is what happens to a request.
type Route struct {
	// Ingress, or a route of the Gateway API of this Kind, is whose it is.
	Ingress types.NamespacedName
	Kind    string
	// Backend is nil only if Code is set or Change redirects.
	Backend *Backend
	Options Options
	// Change, if not nil, is what the Gateway API changes in requests and answers.
	Change *Change
	// Code, if not 0, is the answer: the route is not right.
	Code int
	// pattern, if not nil, is what the path matched.
	pattern *regexp.Regexp
}

// host is the routes of one host.
type host struct {
	name          hosts.Host
	exact, prefix map[string]*Route
	patterns      []*Route // the longest first
	fallback      *Route
}

// Find returns the route of a request, or nil. The path is a decoded one; it is looked up as Clean gives it.
func (t *Table) Find(hostname, requestPath string) *Route {
	found, _ := t.Lookup(hostname, requestPath)
	return found
}

// Lookup is Find, with the host that the route is for.
func (t *Table) Lookup(hostname, requestPath string) (*Route, hosts.Host) {
	h := t.host(strings.ToLower(strings.TrimSuffix(hostname, ".")))
	if h != nil {
		if found := h.find(Clean(requestPath)); found != nil {
			return found, h.name
		}
	}
	return t.fallback, ""
}

// host is the one whose rules apply: the name itself, a wildcard for its first label, or the rules for all hosts.
func (t *Table) host(name string) *host {
	if h := t.exact[name]; h != nil {
		return h
	}
	if _, parent, ok := strings.Cut(name, "."); ok {
		if h := t.wildcard[parent]; h != nil {
			return h
		}
	}
	return t.any
}

// Named is the most specific host for a name that has rules or a certificate; "" if there is only what is for all.
func (t *Table) Named(name string) (most hosts.Host) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if h := t.host(name); h != nil {
		most = h.name
	}
	if _, at := t.CertificateAt(name); at.Specificity() > most.Specificity() {
		most = at
	}
	return most
}

// find prefers an exact path, then a pattern, then the longest prefix.
func (h *host) find(p string) *Route {
	if found := h.exact[p]; found != nil {
		return found
	}
	for _, r := range h.patterns {
		if r.pattern.MatchString(p) {
			return r
		}
	}
	for rest := strings.TrimSuffix(p, "/"); ; rest = rest[:strings.LastIndexByte(rest, '/')] {
		if found := h.prefix[rest]; found != nil {
			return found
		}
		if rest == "" {
			return h.fallback
		}
	}
}

// Certificate returns the certificate for a server name, or nil.
func (t *Table) Certificate(serverName string) *tls.Certificate {
	c, _ := t.CertificateAt(serverName)
	return c
}

// CertificateAt is Certificate, with the host that the certificate is for.
func (t *Table) CertificateAt(serverName string) (*tls.Certificate, hosts.Host) {
	name := strings.ToLower(serverName)
	if c := t.certificates[name]; c != nil {
		return c, hosts.Host(name)
	}
	if _, parent, ok := strings.Cut(name, "."); ok && t.certificates["*."+parent] != nil {
		return t.certificates["*."+parent], hosts.Host("*." + parent)
	}
	return nil, ""
}

// Target is the path that the backend gets for one that was matched.
func (r *Route) Target(p string) string {
	switch {
	case r.Change != nil && r.Change.Path != nil:
		return r.Change.Path.Target(p)
	case r.Options.Rewrite == "":
		return p
	case r.pattern == nil:
		return r.Options.Rewrite
	}
	match := r.pattern.FindStringSubmatchIndex(p)
	if match == nil {
		return p
	}
	target := string(r.pattern.ExpandString(nil, r.Options.Rewrite, p, match))
	return "/" + strings.TrimLeft(target, "/")
}

// Clean resolves "." and ".." and joins slashes, as servers behind us would: rules about a path must not be avoided by writing
// it in another way. A slash at the end stays.
func Clean(p string) string {
	cleaned := path.Clean("/" + p)
	if strings.HasSuffix(p, "/") && cleaned != "/" {
		cleaned += "/"
	}
	return cleaned
}
