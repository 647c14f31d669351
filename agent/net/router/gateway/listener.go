package gateway

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	v1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/setpoint-io/setpoint/internal/gatewayapi"
	"github.com/setpoint-io/setpoint/internal/reserved"
	"github.com/setpoint-io/setpoint/internal/servicerange"
)

// Kinds of routes.
const (
	HTTPRoute = "HTTPRoute"
	GRPCRoute = "GRPCRoute"
	TLSRoute  = "TLSRoute"
)

// listener is one of a Gateway, and what is known of it.
type listener struct {
	gateway *v1.Gateway
	// set is the ListenerSet that it is of, nil if it is the Gateway's own.
	set  *v1.ListenerSet
	spec *v1.Listener
	// kinds are the routes that it takes.
	kinds []string
	// number is the port of nodes where it is served, own if no other Gateway is.
	number       int
	own          bool
	certificates []*tls.Certificate
	attached     int32
	// beside is a younger Service that has the port at addresses of nodes, if there is one; divided says that the port was one too many.
	beside  *corev1.Service
	divided bool
	// accepted, resolved and conflicted say what is wrong; zero: nothing.
	accepted, resolved, conflicted fault
}

// fault is a reason of the API, with a message.
type fault struct{ reason, message string }

func (f fault) any() bool { return f.reason != "" }

// object is the Gateway or ListenerSet that has the listener.
func (l *listener) object() metav1.Object {
	if l.set != nil {
		return l.set
	}
	return l.gateway
}

func (l *listener) hostname() string {
	if l.spec.Hostname == nil {
		return ""
	}
	return strings.ToLower(string(*l.spec.Hostname))
}

func (l *listener) secure() bool {
	return l.spec.Protocol == v1.HTTPSProtocolType || l.spec.Protocol == v1.TLSProtocolType
}

// known tells whether its protocol is served.
func (l *listener) known() bool { return l.secure() || l.spec.Protocol == v1.HTTPProtocolType }

// terminates tells whether TLS ends here, which needs a certificate.
func (l *listener) terminates() bool { return l.secure() && l.mode() != Passthrough }

// served tells whether anything is answered at the listener.
func (l *listener) served() bool {
	return !l.accepted.any() && !l.conflicted.any() && (!l.terminates() || len(l.certificates) > 0)
}

// gateways judges the listeners of all Gateways that are ours, the oldest first, and opens their ports.
func (b *builder) gateways() {
	for _, g := range b.ordered {
		var all []*listener
		shut := refused(g).any()
		for _, p := range b.parents[g] {
			for _, l := range p.listeners {
				b.judge(l, all)
				all = append(all, l)
				b.result.listeners = append(b.result.listeners, l)
				if l.served() && !shut && l.number != 0 {
					b.open(l)
				}
			}
			if p.set != nil {
				b.sets = append(b.sets, p)
			}
		}
	}
}

func (b *builder) judge(l *listener, before []*listener) {
	if len(before) >= listenersMax {
		l.accepted = tooMany()
		return
	}
	b.judgePort(l, before)
	if !l.known() {
		if !l.conflicted.any() {
			l.accepted = fault{string(v1.ListenerReasonUnsupportedProtocol), fmt.Sprintf("the protocol %s is not served here", l.spec.Protocol)}
		}
		return
	}
	if l.terminates() {
		b.judgeTLS(l)
	}
}

// judgeHost: a listener with a hostname takes its connections, so the name must be its namespace's.
func (b *builder) judgeHost(l *listener) {
	if l.hostname() == "" {
		return
	}
	if by := b.taken(b.claim(l, l.hostname(), l.object(), l.kind())); by != "" {
		l.conflicted = fault{string(v1.ListenerReasonHostnameConflict), by}
	}
}

// judgeKinds: of the kinds that the listener wants, those that are routes here.
func (b *builder) judgeKinds(l *listener) {
	l.kinds = []string{HTTPRoute, GRPCRoute}
	if l.spec.Protocol == v1.TLSProtocolType {
		l.kinds = []string{TLSRoute}
	}
	if l.spec.AllowedRoutes == nil || len(l.spec.AllowedRoutes.Kinds) == 0 {
		return
	}
	known := l.kinds
	l.kinds = nil
	for _, wanted := range l.spec.AllowedRoutes.Kinds {
		if wanted.Group != nil && string(*wanted.Group) != v1.GroupName || !slices.Contains(known, string(wanted.Kind)) {
			l.resolved = fault{string(v1.ListenerReasonInvalidRouteKinds), fmt.Sprintf("routes of the kind %s are not served by this listener", wanted.Kind)}
			continue
		}
		l.kinds = append(l.kinds, string(wanted.Kind))
	}
}

// judgePort: a port speaks TLS, or it does not; with TLS, each hostname has one protocol and mode. The cluster's own
// are nobody's: while a server is away, its port would be a Gateway's.
func (b *builder) judgePort(l *listener, before []*listener) {
	if holding, taken := b.Reserved.Everywhere(reserved.TCP(l.spec.Port)); !l.own && taken {
		l.accepted = fault{string(v1.ListenerReasonPortUnavailable), holding.String()}
		return
	}
	if !l.own && servicerange.IsNodePort(l.spec.Port) {
		l.accepted = fault{
			string(v1.ListenerReasonPortUnavailable),
			fmt.Sprintf("port %d of nodes is one of the node ports, %d to %d", l.spec.Port, servicerange.NodePortMin, servicerange.NodePortMax),
		}
		return
	}
	for _, other := range before {
		if f := other.conflictsWith(l); f.any() {
			l.conflicted = f
			return
		}
	}
	if !l.known() {
		return
	}
	if secure, shared := b.Shared[l.number]; shared && !l.own && secure != l.secure() {
		l.accepted = fault{
			string(v1.ListenerReasonPortUnavailable),
			fmt.Sprintf("nodes serve Ingresses at port %d by another protocol", l.spec.Port),
		}
	}
	b.judgeBalancers(l)
	b.judgeHost(l)
	if open := b.result.Ports[l.number]; open != nil && !open.speaks(l) {
		l.conflicted = fault{
			string(v1.ListenerReasonProtocolConflict), fmt.Sprintf("port %d has another protocol in Gateway %s/%s", l.spec.Port, open.first.Namespace, open.first.Name),
		}
	}
}

// conflictsWith says why another listener of the Gateway, which comes later, cannot be at the same port.
func (l *listener) conflictsWith(other *listener) fault {
	alike := l.spec.Protocol == other.spec.Protocol || l.secure() && other.secure()
	switch {
	case l.spec.Port != other.spec.Port || l.accepted.any() || l.conflicted.any():
	case other.spec.Protocol == v1.TCPProtocolType:
		return fault{string(v1.ListenerReasonProtocolConflict), fmt.Sprintf("listener %s has another protocol at the port", l.spec.Name)}
	case alike && l.hostname() == other.hostname():
		return fault{string(v1.ListenerReasonHostnameConflict), fmt.Sprintf("listener %s has the same port and hostname", l.spec.Name)}
	}
	return fault{}
}

var errNoSecret = errors.New("only Secrets of the core group can be certificates")

// judgeTLS reads the certificates. One that cannot be used does not keep the others away.
func (b *builder) judgeTLS(l *listener) {
	config := l.spec.TLS
	if config == nil || config.Mode != nil && *config.Mode != v1.TLSModeTerminate {
		l.accepted = fault{string(v1.ListenerReasonUnsupportedValue), fmt.Sprintf("%s listeners need tls, and those of HTTPS the mode Terminate", l.spec.Protocol)}
		return
	}
	if frontend := l.gateway.Spec.TLS; frontend != nil && frontend.Frontend != nil && validates(frontend.Frontend, l.spec.Port) {
		l.accepted = fault{string(v1.ListenerReasonUnsupportedValue), "certificates of clients are not checked here, so nobody is let in"}
		return
	}
	if len(config.CertificateRefs) == 0 {
		l.resolved = fault{string(v1.ListenerReasonInvalidCertificateRef), "tls has no certificateRefs"}
	}
	for i := range config.CertificateRefs {
		certificate, reason, err := b.certificate(l, &config.CertificateRefs[i])
		if err != nil {
			l.resolved = fault{string(reason), fmt.Sprintf("Secret %s: %v", config.CertificateRefs[i].Name, err)}
			continue
		}
		l.certificates = append(l.certificates, certificate)
	}
}

func validates(frontend *v1.FrontendTLSConfig, port v1.PortNumber) bool {
	for _, p := range frontend.PerPort {
		if p.Port == port {
			return p.TLS.Validation != nil
		}
	}
	return frontend.Default.Validation != nil
}

var errNotPermitted = errors.New("no ReferenceGrant of its namespace permits it")

func (b *builder) certificate(l *listener, to *v1.SecretObjectReference) (*tls.Certificate, v1.ListenerConditionReason, error) {
	ref, isSecret := gatewayapi.SecretOf(l.object(), to)
	if !isSecret {
		return nil, v1.ListenerReasonInvalidCertificateRef, errNoSecret
	}
	if !gatewayapi.Permitted(b.Grants, ref) {
		return nil, v1.ListenerReasonRefNotPermitted, errNotPermitted
	}
	certificate, err := b.Certificate(ref.ToNamespace, ref.ToName)
	return certificate, v1.ListenerReasonInvalidCertificateRef, err
}

// takes tells whether a route's namespace may attach to the listener.
func (b *builder) takes(l *listener, namespace string) bool {
	from, selector := v1.NamespacesFromSame, (*metav1.LabelSelector)(nil)
	if allowed := l.spec.AllowedRoutes; allowed != nil && allowed.Namespaces != nil {
		from, selector = cmp.Or(*orZero(allowed.Namespaces.From), from), allowed.Namespaces.Selector
	}
	return b.fromNamespace(from, selector, l.object().GetNamespace(), namespace)
}

// fromNamespace tells whether an object of one namespace lets those of another in.
func (b *builder) fromNamespace(from v1.FromNamespaces, selector *metav1.LabelSelector, own, namespace string) bool {
	switch from {
	case v1.NamespacesFromAll:
		return true
	case v1.NamespacesFromSame:
		return namespace == own
	case v1.NamespacesFromSelector:
		chosen, err := metav1.LabelSelectorAsSelector(selector)
		return err == nil && chosen.Matches(labels.Set(b.Namespace(namespace)))
	}
	return false
}

func orZero[T any](p *T) *T {
	if p == nil {
		return new(T)
	}
	return p
}
