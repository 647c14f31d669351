package dynamic

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// serviceResolver finds a pod behind a Service in this replica's tables. A server
// need not be a node, so the Service's own address may lead nowhere from here.
type serviceResolver struct {
	services, slices *storage.Table
}

// NewServiceResolver returns a resolver that reads the store's tables, for webhooks of
// every kind.
func NewServiceResolver(store *storage.Store) webhook.ServiceResolver {
	return serviceResolver{
		services: store.Table(corev1.SchemeGroupVersion.WithResource("services")),
		slices:   store.Table(discoveryv1.SchemeGroupVersion.WithResource("endpointslices")),
	}
}

// ResolveEndpoint implements webhook.ServiceResolver: the address of any ready pod
// of the Service, behind one of its ports. The certificate proves who answers there.
func (r serviceResolver) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	service, err := r.service(namespace, name)
	if err != nil {
		return nil, err
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return httpsURL(service.Spec.ExternalName, port), nil
	}
	i := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port })
	if i < 0 {
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("no service port %d found for service %q", port, name))
	}
	ready, err := r.ready(namespace, name, service.Spec.Ports[i].Name)
	if err != nil {
		return nil, err
	}
	if len(ready) == 0 {
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", name))
	}
	return ready[rand.IntN(len(ready))], nil
}

func (r serviceResolver) service(namespace, name string) (*corev1.Service, error) {
	snapshot, err := r.services.Snapshot(context.Background(), "0")
	if err != nil {
		return nil, err
	}
	obj, err := snapshot.Get(namespace, name)
	if err == nil && obj == nil {
		err = apierrors.NewNotFound(corev1.Resource("services"), name)
	}
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.Service), nil
}

// ready lists the addresses that serve a port of a Service.
func (r serviceResolver) ready(namespace, service, port string) ([]*url.URL, error) {
	snapshot, err := r.slices.Snapshot(context.Background(), "0")
	if err != nil {
		return nil, err
	}
	var all []*url.URL
	for obj, err := range snapshot.All(namespace) {
		if err != nil {
			return nil, err
		}
		if slice := obj.(*discoveryv1.EndpointSlice); slice.Labels[discoveryv1.LabelServiceName] == service {
			all = append(all, readyIn(slice, port)...)
		}
	}
	return all, nil
}

func readyIn(slice *discoveryv1.EndpointSlice, port string) []*url.URL {
	i := slices.IndexFunc(slice.Ports, func(p discoveryv1.EndpointPort) bool {
		return p.Port != nil && (p.Name == nil && port == "" || p.Name != nil && *p.Name == port)
	})
	if i < 0 {
		return nil
	}
	var all []*url.URL
	for _, e := range slice.Endpoints {
		if e.Conditions.Ready != nil && !*e.Conditions.Ready || len(e.Addresses) == 0 {
			continue
		}
		all = append(all, httpsURL(e.Addresses[0], *slice.Ports[i].Port))
	}
	return all
}

func httpsURL(host string, port int32) *url.URL {
	return &url.URL{Scheme: "https", Host: net.JoinHostPort(host, strconv.Itoa(int(port)))}
}

// DialServices makes the clients of webhooks that are named by Service connect by dial. Those that are named by URL are outside
// the cluster and dialled as ever.
func DialServices(dial utilnet.DialFunc) webhook.AuthenticationInfoResolverWrapper {
	return func(as webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
		return &webhook.AuthenticationInfoResolverDelegator{
			ClientConfigForFunc: as.ClientConfigFor,
			ClientConfigForServiceFunc: func(name, namespace string, port int) (*rest.Config, error) {
				config, err := as.ClientConfigForService(name, namespace, port)
				if err == nil {
					config.Dial = dial
				}
				return config, err
			},
		}
	}
}

// DialAll makes the clients of all webhooks connect by dial, also of those that are named by URL.
func DialAll(dial utilnet.DialFunc) webhook.AuthenticationInfoResolverWrapper {
	return func(as webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
		services := DialServices(dial)(as)
		return &webhook.AuthenticationInfoResolverDelegator{
			ClientConfigForFunc: func(hostPort string) (*rest.Config, error) {
				config, err := as.ClientConfigFor(hostPort)
				if err == nil {
					config.Dial = dial
				}
				return config, err
			},
			ClientConfigForServiceFunc: services.ClientConfigForService,
		}
	}
}
