package firstroutes

import (
	"crypto/tls"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	v1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/setpoint-io/setpoint/agent/net/router/gateway"
	"github.com/setpoint-io/setpoint/agent/net/router/table"
	"github.com/setpoint-io/setpoint/internal/gatewayapi"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

// world is all that decides who has a host or a port.
type world struct {
	gatewayapi.Objects
	ingresses []*networkingv1.Ingress
	classes   []*networkingv1.IngressClass
	services  []*corev1.Service
	nodes     []*corev1.Node
}

// with is the world in which an object is as given.
func (w world) with(o metav1.Object) world {
	switch o := o.(type) {
	case *v1.Gateway:
		w.Gateways = replaced(w.Gateways, o)
	case *v1.ListenerSet:
		w.ListenerSets = replaced(w.ListenerSets, o)
	case *v1.HTTPRoute:
		w.HTTPRoutes = replaced(w.HTTPRoutes, o)
	case *v1.GRPCRoute:
		w.GRPCRoutes = replaced(w.GRPCRoutes, o)
	case *v1.TLSRoute:
		w.TLSRoutes = replaced(w.TLSRoutes, o)
	case *networkingv1.Ingress:
		w.ingresses = replaced(w.ingresses, o)
	}
	return w
}

func replaced[T metav1.Object](all []T, by T) []T {
	others := slices.DeleteFunc(slices.Clone(all), func(o T) bool {
		return o.GetNamespace() == by.GetNamespace() && o.GetName() == by.GetName()
	})
	return append(others, by)
}

var errNotAsked = errors.New("it is not asked for")

// result says who has what. Nothing is routed by it, so it has no endpoints, and every certificate is good.
func (p Plugin) result(w world) *gateway.Result {
	w.BackendTLSPolicies = nil
	good := &tls.Certificate{}
	return gateway.Build(gateway.Input{
		Objects: w.Objects, Namespace: p.labelsOf, Service: p.service, Services: func() []*corev1.Service { return w.services },
		Slices:      func(string, string) []*discoveryv1.EndpointSlice { return nil },
		Certificate: func(string, string) (*tls.Certificate, error) { return good, nil },
		Authorities: func(string, string) (*table.Authorities, error) { return nil, errNotAsked },
		Hosts:       table.Claims(table.Ours(w.classes, w.ingresses)), Reserved: p.Reserved, Shared: reserved.SharedPorts(w.nodes),
	})
}

func (p Plugin) labelsOf(name string) map[string]string {
	namespace, err := p.Namespaces.Get(name)
	if err != nil {
		return nil
	}
	return namespace.Labels
}

func (p Plugin) service(namespace, name string) *corev1.Service {
	service, err := p.Services.Services(namespace).Get(name)
	if err != nil {
		return nil
	}
	return service
}

// now is what this replica has.
func (p Plugin) now(objects gatewayapi.Objects) (w world, err error) {
	all := labels.Everything()
	lists := make([]error, 4)
	w.Objects = objects
	w.ingresses, lists[0] = p.Ingresses.List(all)
	w.classes, lists[1] = p.Classes.List(all)
	w.services, lists[2] = p.Services.List(all)
	w.nodes, lists[3] = p.Nodes.List(all)
	return w, errors.Join(lists...)
}
