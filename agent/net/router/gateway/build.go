package gateway

import (
	"cmp"
	"crypto/tls"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/setpoint-io/setpoint/agent/net/router/hosts"
	"github.com/setpoint-io/setpoint/agent/net/router/table"
	"github.com/setpoint-io/setpoint/internal/gatewayapi"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

// Input is what a Result is built from. Objects are not changed.
type Input struct {
	gatewayapi.Objects
	// Namespace returns the labels of a namespace, nil if there is none of that name.
	Namespace func(name string) map[string]string
	// Service returns a Service, or nil.
	Service func(namespace, name string) *corev1.Service
	// Services returns all of them.
	Services func() []*corev1.Service
	// Slices returns the EndpointSlices of a Service.
	Slices func(namespace, service string) []*discoveryv1.EndpointSlice
	// Certificate returns that of a Secret, or what is wrong with it.
	Certificate func(namespace, secret string) (*tls.Certificate, error)
	// Authorities returns those of a ConfigMap, or what is wrong with it.
	Authorities func(namespace, configMap string) (*table.Authorities, error)
	// Hosts are the claims of Ingresses to hosts, at the Shared ports.
	Hosts []hosts.Claim
	// Reserved are the ports of machines that are the cluster's.
	Reserved *reserved.Book
	// Shared are the ports at which Ingresses are served, with TLS or without.
	Shared map[int]bool
}

// Result is what is served, and what is told of it.
type Result struct {
	// Ports are by their number at the nodes.
	Ports    map[int]*Port
	Gateways []GatewayState
	Sets     []SetState
	Routes   []RouteState
	Policies []PolicyState
	// Trusting are the keys of all TLS in use.
	Trusting map[string]bool
	// Hosts knows who has each host, Ingresses too.
	Hosts *hosts.Book
	// Taken are the claims of Gateways and routes to hosts that others have.
	Taken []Taken
	// claims are those of all, of Ingresses too, and listeners those of all Gateways, for Losses.
	claims    []hosts.Claim
	listeners []*listener
}

// GatewayState is what a Gateway's status says. Conditions have no times and generations.
type GatewayState struct {
	Gateway *v1.Gateway
	// Ports are those of its listeners and of those that ListenerSets add, each once; Sets is how many of these are accepted.
	Ports      []int32
	Sets       int32
	Conditions []metav1.Condition
	Listeners  []v1.ListenerStatus
}

// RouteState is what a route's status says of the parents that are ours, which may be none.
type RouteState struct {
	Route   metav1.Object
	Parents []v1.RouteParentStatus
}

// Build makes the Result of all objects.
func Build(in Input) *Result {
	b := &builder{
		Input: in, result: &Result{Ports: map[int]*Port{}, Trusting: map[string]bool{}},
		backends: map[backendKey]*backend{}, parent: map[parentKey]*parent{}, parents: map[*v1.Gateway][]*parent{},
	}
	b.balancer = b.balancers()
	b.ordered = gatewayapi.Ours(&b.Objects)
	slices.SortFunc(b.ordered, func(a, b *v1.Gateway) int { return older(a, b) })
	for _, g := range b.ordered {
		b.listeners(g)
	}
	routes := b.routes()
	b.result.claims = append(b.claims(routes), in.Hosts...)
	b.result.Hosts = hosts.New(b.result.claims)
	b.gateways()
	b.dividePorts()
	b.judgePolicies()
	for _, r := range routes {
		b.route(r)
	}
	for _, port := range b.result.Ports {
		port.sort()
	}
	b.conclude()
	for _, p := range b.judged {
		b.result.Policies = append(b.result.Policies, p.state())
		if p.tls != nil {
			b.result.Trusting[p.tls.Key] = true
		}
	}
	return b.result
}

// builder is one Build.
type builder struct {
	Input
	result   *Result
	parent   map[parentKey]*parent
	parents  map[*v1.Gateway][]*parent
	ordered  []*v1.Gateway
	sets     []*parent
	backends map[backendKey]*backend
	policies map[target][]*policy
	judged   []*policy
	balancer func(port int32) *corev1.Service
	// opened are the numbers of the ports, those of the oldest Gateways first.
	opened []int
}

// older orders objects by age, as the precedence of the API does.
func older(a, b metav1.Object) int {
	return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time),
		cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

// routes are those of all kinds, the oldest first.
func (b *builder) routes() []*route {
	var all []*route
	for _, r := range b.HTTPRoutes {
		if r.DeletionTimestamp == nil {
			all = append(all, ofHTTP(r))
		}
	}
	for _, r := range b.GRPCRoutes {
		if r.DeletionTimestamp == nil {
			all = append(all, ofGRPC(r))
		}
	}
	for _, r := range b.TLSRoutes {
		if r.DeletionTimestamp == nil {
			all = append(all, ofTLS(r))
		}
	}
	slices.SortFunc(all, func(a, b *route) int { return cmp.Or(older(a.object, b.object), cmp.Compare(a.kind, b.kind)) })
	return all
}

func condition(kind string, holds bool, reason, message string) metav1.Condition {
	status := metav1.ConditionFalse
	if holds {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}
