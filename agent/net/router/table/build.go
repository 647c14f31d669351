package table

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/net/router/hosts"
)

// Controller is that of the IngressClasses that are served here.
const Controller = "setpoint.io/ingress"

// classAnnotation named the class before there was a field.
const classAnnotation = "kubernetes.io/ingress.class"

// patternBytesMax bounds one regular expression; Go's take linear time, but memory in proportion.
const patternBytesMax = 512

// Input is what a Table is built from. Objects are not changed.
type Input struct {
	Classes   []*networkingv1.IngressClass
	Ingresses []*networkingv1.Ingress
	// Service returns a Service, or nil.
	Service func(namespace, name string) *corev1.Service
	// Slices returns the EndpointSlices of a Service.
	Slices func(namespace, service string) []*discoveryv1.EndpointSlice
	// Certificate returns that of a Secret, or what is wrong with it.
	Certificate func(namespace, secret string) (*tls.Certificate, error)
	// Hosts knows who has which host; nil: of these Ingresses, by Claims.
	Hosts *hosts.Book
}

// Problem is something in an Ingress that is not served as it says.
type Problem struct {
	Ingress         *networkingv1.Ingress
	Reason, Message string
}

// Build makes the table of the Ingresses whose class is ours.
func Build(in Input) (*Table, []Problem) {
	b := &builder{
		Input: in, backends: map[backendKey]*Backend{},
		table: &Table{exact: map[string]*host{}, wildcard: map[string]*host{}, certificates: map[string]*tls.Certificate{}},
	}
	ours := Ours(in.Classes, in.Ingresses)
	if b.Hosts == nil {
		b.Hosts = hosts.New(Claims(ours))
	}
	for _, i := range ours {
		b.ingress(i)
	}
	return b.table, b.problems
}

// Ours are the Ingresses that are served here, the oldest first.
func Ours(classes []*networkingv1.IngressClass, all []*networkingv1.Ingress) []*networkingv1.Ingress {
	names := map[string]bool{}
	for _, c := range classes {
		names[c.Name] = c.Spec.Controller == Controller
	}
	ours := slices.DeleteFunc(slices.Clone(all), func(i *networkingv1.Ingress) bool {
		class := i.Annotations[classAnnotation]
		if i.Spec.IngressClassName != nil {
			class = *i.Spec.IngressClassName
		}
		return !names[class] || i.DeletionTimestamp != nil
	})
	slices.SortFunc(ours, func(a, b *networkingv1.Ingress) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return ours
}

// builder is one Build.
type builder struct {
	Input
	table    *Table
	problems []Problem
	backends map[backendKey]*Backend
}

func (b *builder) problem(i *networkingv1.Ingress, reason, format string, args ...any) {
	b.problems = append(b.problems, Problem{i, reason, fmt.Sprintf(format, args...)})
}

func (b *builder) ingress(i *networkingv1.Ingress) {
	options := b.options(i)
	secure := b.certificates(i)
	var fallback *Route
	if i.Spec.DefaultBackend != nil {
		fallback = b.route(i, options, i.Spec.DefaultBackend)
		if b.table.fallback == nil {
			b.table.fallback = fallback
		} else if len(i.Spec.Rules) == 0 {
			b.problem(i, "Conflict", "the default backend is that of the older Ingress %s", b.table.fallback.Ingress)
		}
	}
	for _, rule := range i.Spec.Rules {
		if b.taken(i, rule.Host) {
			continue
		}
		h := b.host(strings.ToLower(rule.Host))
		ruled := options
		ruled.RedirectTLS = options.ForceTLS || options.RedirectTLS && secure[strings.ToLower(rule.Host)]
		if fallback != nil && h.fallback == nil {
			h.fallback = fallback
		}
		if rule.HTTP == nil {
			continue
		}
		for n := range rule.HTTP.Paths {
			b.path(i, h, rule.Host, &rule.HTTP.Paths[n], ruled)
		}
	}
}

// host returns the routes of a rule's host, which it makes if need be.
func (b *builder) host(name string) *host {
	byName, key := b.table.exact, name
	if parent, wild := strings.CutPrefix(name, "*."); wild {
		byName, key = b.table.wildcard, parent
	}
	if name == "" {
		if b.table.any == nil {
			b.table.any = newHost("")
		}
		return b.table.any
	}
	if byName[key] == nil {
		byName[key] = newHost(name)
	}
	return byName[key]
}

func newHost(name string) *host {
	return &host{name: hosts.Host(name), exact: map[string]*Route{}, prefix: map[string]*Route{}}
}

// path adds one path of a rule.
func (b *builder) path(i *networkingv1.Ingress, h *host, hostname string, p *networkingv1.HTTPIngressPath, options Options) {
	route := b.route(i, options, &p.Backend)
	kind := networkingv1.PathTypeImplementationSpecific
	if p.PathType != nil {
		kind = *p.PathType
	}
	if options.Patterns && kind != networkingv1.PathTypeExact {
		b.pattern(i, h, p.Path, route)
		return
	}
	paths, key := h.prefix, strings.TrimSuffix(p.Path, "/")
	if kind == networkingv1.PathTypeExact {
		paths, key = h.exact, p.Path
	}
	if first := paths[key]; first != nil {
		b.problem(i, "Conflict", "host %q, path %q of type %s is that of the older Ingress %s", hostname, p.Path, kind, first.Ingress)
		return
	}
	paths[key] = route
}

// pattern adds a path that is a regular expression; it matches from the beginning, in any case of letters, as nginx has it.
func (b *builder) pattern(i *networkingv1.Ingress, h *host, expression string, route *Route) {
	if len(expression) > patternBytesMax {
		b.problem(i, "InvalidPath", "a regular expression has %d bytes; at most %d are allowed", len(expression), patternBytesMax)
		return
	}
	compiled, err := regexp.Compile("(?i)^" + expression)
	if err != nil {
		b.problem(i, "InvalidPath", "path %q is no regular expression: %v", expression, err)
		return
	}
	route.pattern = compiled
	h.patterns = append(h.patterns, route)
	slices.SortStableFunc(h.patterns, func(a, b *Route) int { return len(b.pattern.String()) - len(a.pattern.String()) })
}

func (b *builder) route(i *networkingv1.Ingress, options Options, backend *networkingv1.IngressBackend) *Route {
	return &Route{
		Ingress: types.NamespacedName{Namespace: i.Namespace, Name: i.Name}, Backend: b.backend(i, backend, options), Options: options,
	}
}

// certificates registers those of the Ingress, and returns which hosts are served by TLS.
func (b *builder) certificates(i *networkingv1.Ingress) map[string]bool {
	secure := map[string]bool{}
	for _, t := range i.Spec.TLS {
		named := t.Hosts
		if len(named) == 0 {
			for _, rule := range i.Spec.Rules {
				named = append(named, rule.Host)
			}
		}
		for _, h := range named {
			secure[strings.ToLower(h)] = true
		}
		if t.SecretName == "" {
			continue
		}
		certificate, err := b.Certificate(i.Namespace, t.SecretName)
		if err != nil {
			b.problem(i, "InvalidCertificate", "Secret %s: %v", t.SecretName, err)
			continue
		}
		for _, h := range named {
			if _, taken := b.Hosts.Taken(claim(i, h)); !taken { // its rule says so
				b.certificate(i, strings.ToLower(h), certificate)
			}
		}
	}
	return secure
}

func (b *builder) certificate(i *networkingv1.Ingress, hostname string, c *tls.Certificate) {
	if first := b.table.certificates[hostname]; first != nil && first != c {
		b.problem(i, "Conflict", "the certificate of host %q is that of an older Ingress", hostname)
		return
	}
	b.table.certificates[hostname] = c
}
