package gateway

import (
	"cmp"
	"crypto/tls"
	"net/http"
	"slices"
	"strings"

	v1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/setpoint-io/setpoint/agent/net/router/hosts"
	"github.com/setpoint-io/setpoint/agent/net/router/table"
)

// Port is what is served at one, by the listeners of all Gateways.
type Port struct {
	// Number is the port of the listeners, by which clients ask.
	Number int
	// Secure says that it speaks TLS.
	Secure bool
	// Streams says that some connections are copied, Requests that of some the requests are routed.
	Streams, Requests bool
	// first is the Gateway that has opened it.
	first *v1.Gateway
	sites names[*site]
}

// site is the listeners with one hostname.
type site struct {
	name         string // "" is any
	mode         Mode
	gateways     []*v1.Gateway
	certificates []*tls.Certificate
	hosts        names[*host]
}

// host is the rules for one hostname of routes, its name. Lists are in the order of precedence.
type host struct {
	name          string
	exact, prefix map[string][]entry
	patterns      []entry
}

// entry is a match of a route that is attached to a listener of the Gateway.
type entry struct {
	*match
	gateway *v1.Gateway
}

// names finds what belongs to a hostname, also to "*.example.com" and to any, which is "".
type names[T any] struct {
	exact, wildcard map[string]T
	any             *T
}

// at returns what belongs to a name, which make makes if need be.
func (n *names[T]) at(name string, make func() T) T {
	if name == "" {
		if n.any == nil {
			n.any = new(make())
		}
		return *n.any
	}
	byName, key := &n.exact, name
	if parent, wild := strings.CutPrefix(name, "*."); wild {
		byName, key = &n.wildcard, parent
	}
	if *byName == nil {
		*byName = map[string]T{}
	}
	found, known := (*byName)[key]
	if !known {
		found = make()
		(*byName)[key] = found
	}
	return found
}

// get returns what belongs to a name itself.
func (n *names[T]) get(name string) (found T, known bool) {
	if name == "" && n.any != nil {
		return *n.any, true
	}
	if parent, wild := strings.CutPrefix(name, "*."); wild {
		found, known = n.wildcard[parent]
		return found, known
	}
	found, known = n.exact[name]
	return found, known
}

// each calls f with what belongs to a host, from the most specific name to any, until f says that it is enough.
func (n *names[T]) each(name string, enough func(T) bool) bool {
	if found, ok := n.exact[name]; ok && enough(found) {
		return true
	}
	for rest, ok := name, len(n.wildcard) > 0; ok; {
		if _, rest, ok = strings.Cut(rest, "."); !ok {
			break
		}
		if found, known := n.wildcard[rest]; known && enough(found) {
			return true
		}
	}
	return n.any != nil && enough(*n.any)
}

// open adds a listener to its port.
func (b *builder) open(l *listener) {
	port := b.result.Ports[l.number]
	if port == nil {
		port = &Port{Number: int(l.spec.Port), Secure: l.secure(), first: l.gateway}
		b.result.Ports[l.number] = port
		b.opened = append(b.opened, l.number)
	}
	port.Streams, port.Requests = port.Streams || l.mode() != HTTP, port.Requests || l.mode() == HTTP
	at := port.siteOf(l)
	at.gateways = append(at.gateways, l.gateway)
	at.certificates = append(at.certificates, l.certificates...)
}

func (p *Port) siteOf(l *listener) *site {
	return p.sites.at(l.hostname(), func() *site { return &site{name: l.hostname(), mode: l.mode()} })
}

// speaks tells whether a listener's protocol is that of the port, and its mode that of its hostname's other listeners.
func (p *Port) speaks(l *listener) bool {
	at, known := p.sites.get(l.hostname())
	return p.Secure == l.secure() && (!known || at.mode == l.mode())
}

// serve adds rules to a listener, for these names.
func (b *builder) serve(l *listener, hostnames []string, rules []*rule) {
	port := b.result.Ports[l.number]
	if port == nil || !l.served() || refused(l.gateway).any() {
		return
	}
	at := port.siteOf(l)
	for _, name := range hostnames {
		h := at.hosts.at(name, func() *host { return &host{name: name, exact: map[string][]entry{}, prefix: map[string][]entry{}} })
		for _, r := range rules {
			for _, m := range r.matches {
				h.add(entry{m, l.gateway})
			}
		}
	}
}

func (h *host) add(e entry) {
	switch {
	case e.pattern != nil:
		h.patterns = append(h.patterns, e)
	case e.exact:
		h.exact[e.path] = append(h.exact[e.path], e)
	default:
		h.prefix[e.path] = append(h.prefix[e.path], e)
	}
}

// sort brings matches with the same path into the order of precedence: routes have come by age, and rules in their order.
func (p *Port) sort() {
	all := func(h *host) {
		for _, lists := range []map[string][]entry{h.exact, h.prefix} {
			for _, list := range lists {
				slices.SortStableFunc(list, preferred)
			}
		}
		slices.SortStableFunc(h.patterns, func(a, b entry) int {
			return cmp.Or(len(b.pattern.String())-len(a.pattern.String()), preferred(a, b))
		})
	}
	p.sites.all(func(s *site) { s.hosts.all(all) })
}

func (n *names[T]) all(f func(T)) {
	for _, byName := range []map[string]T{n.exact, n.wildcard} {
		for _, each := range byName {
			f(each)
		}
	}
	if n.any != nil {
		f(*n.any)
	}
}

// preferred: a method is better than none, then the number of headers counts, then that of parameters.
func preferred(a, b entry) int {
	return cmp.Or(min(len(b.method), 1)-min(len(a.method), 1), len(b.headers)-len(a.headers), len(b.query)-len(a.query))
}

// Find returns the route of a request, or nil. The host is without a port.
func (p *Port) Find(hostname string, req *http.Request) *table.Route {
	found, _ := p.Lookup(hostname, req)
	return found
}

// Lookup is Find, with the host that the route is for.
func (p *Port) Lookup(hostname string, req *http.Request) (found *table.Route, at hosts.Host) {
	name, path := lower(hostname), table.Clean(req.URL.Path)
	a := &asked{Request: req}
	var passed []*v1.Gateway // with a more specific listener, to which the request belongs
	p.sites.each(name, func(s *site) bool {
		if s.mode != HTTP {
			return true // no request has come by it
		}
		s.hosts.each(name, func(h *host) bool {
			if m := h.find(path, a, passed); m != nil {
				found, at = m.choose(), hosts.Host(h.name)
			}
			return found != nil
		})
		passed = append(passed, s.gateways...)
		return found != nil
	})
	return found, at
}

func lower(hostname string) string { return strings.ToLower(strings.TrimSuffix(hostname, ".")) }

// find prefers an exact path, then a pattern, then the longest prefix.
func (h *host) find(path string, a *asked, passed []*v1.Gateway) *match {
	if found := first(h.exact[path], a, passed); found != nil {
		return found
	}
	for i := range h.patterns {
		if h.patterns[i].pattern.MatchString(path) {
			if found := first(h.patterns[i:i+1], a, passed); found != nil {
				return found
			}
		}
	}
	for rest := strings.TrimSuffix(path, "/"); ; rest = rest[:strings.LastIndexByte(rest, '/')] {
		if found := first(h.prefix[rest], a, passed); found != nil {
			return found
		}
		if rest == "" {
			return nil
		}
	}
}

func first(list []entry, a *asked, passed []*v1.Gateway) *match {
	for i := range list {
		if list[i].fits(a) && !slices.Contains(passed, list[i].gateway) {
			return list[i].match
		}
	}
	return nil
}

// Named is the hostname of the listener for a name; "" if there is only one for all names, or none.
func (p *Port) Named(hostname string) (at hosts.Host) {
	p.sites.each(lower(hostname), func(s *site) bool { at = hosts.Host(s.name); return true })
	return at
}

// Listener is something that is equal for hosts that the same listeners serve; nil if none does.
func (p *Port) Listener(hostname string) (found any) {
	p.sites.each(lower(hostname), func(s *site) bool { found = s; return true })
	return found
}

// Certificate returns the certificate for a server name, or nil. Of several it is the one that is for the name, or the first.
func (p *Port) Certificate(hello *tls.ClientHelloInfo) (found *tls.Certificate) {
	p.sites.each(lower(hello.ServerName), func(s *site) bool {
		for _, c := range s.certificates {
			if found == nil || hello.SupportsCertificate(c) == nil && hello.SupportsCertificate(found) != nil {
				found = c
			}
		}
		return found != nil
	})
	return found
}
