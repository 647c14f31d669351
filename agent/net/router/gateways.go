package router

import (
	"context"
	"crypto/tls"
	"maps"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/agent/net/router/gateway"
	"github.com/setpoint-io/setpoint/agent/net/router/hosts"
	"github.com/setpoint-io/setpoint/agent/net/router/table"
	"github.com/setpoint-io/setpoint/internal/gatewayapi"
)

// ports are what Gateways serve, by number.
type ports map[int]*gateway.Port

// opened is a port that is open for Gateways alone.
type opened struct {
	secure bool
	close  context.CancelFunc
}

// gatewayChanged: who writes a status changes nothing that is served.
func (r *router) gatewayChanged(before, after metav1.Object) {
	if before != nil && after != nil && before.GetGeneration() == after.GetGeneration() && before.GetGeneration() != 0 &&
		(before.GetDeletionTimestamp() == nil) == (after.GetDeletionTimestamp() == nil) {
		return
	}
	r.look()
}

// gatewayObjects are those of now, if they are known.
func (r *router) gatewayObjects() (gatewayapi.Objects, bool) {
	if r.objects == nil {
		return gatewayapi.Objects{}, false
	}
	return r.objects.Objects()
}

// known looks up what was made of a Secret or ConfigMap, if it is known.
func known[V any](named *gatewayapi.Named[V]) func(namespace, name string) (V, error) {
	return func(namespace, name string) (V, error) {
		value, _, err := named.Value(namespace, name)
		return value, err
	}
}

// buildGateways makes what Gateways serve, and opens their ports. The statuses are written by controllers/gateway, once for all nodes.
func (r *router) buildGateways(ctx context.Context, objects gatewayapi.Objects, claims []hosts.Claim) *gateway.Result {
	r.authorities.Want(ctx, gatewayapi.Authorities(&objects))
	namespaces := r.Informers.Core().V1().Namespaces().Lister()
	built := gateway.Build(gateway.Input{
		Objects: objects, Slices: r.slices, Certificate: known(r.ofGateways), Authorities: known(r.authorities),
		Reserved: r.Reserved, Shared: r.Ports.byNumber(), Hosts: claims,
		Service: table.ServiceFrom(r.Informers.Core().V1().Services().Lister()), Services: r.services,
		Namespace: func(name string) map[string]string {
			namespace, err := namespaces.Get(name)
			if err != nil {
				return nil // a cache knows no other error than that it is missing
			}
			return namespace.Labels
		},
	})
	return built
}

func (r *router) services() []*corev1.Service {
	all, _ := r.Informers.Core().V1().Services().Lister().List(labels.Everything()) // a cache cannot fail
	return all
}

// serveGateways opens the ports of what was built, and closes others.
func (r *router) serveGateways(ctx context.Context, built *gateway.Result) {
	r.ports.Store((*ports)(&built.Ports))
	r.transports.keep(built.Trusting)
	r.open(ctx, built.Ports)
}

// open opens the ports that are wanted and closes others. A port that closes answers what is under way.
func (r *router) open(ctx context.Context, wanted map[int]*gateway.Port) {
	for number, o := range r.opened {
		if port := wanted[number]; port == nil || port.Secure != o.secure {
			o.close()
			delete(r.opened, number)
		}
	}
	shared := r.Ports.byNumber()
	for _, number := range slices.Sorted(maps.Keys(wanted)) {
		port := wanted[number]
		if _, ofIngress := shared[number]; ofIngress || r.opened[number].close != nil {
			continue
		}
		r.opened[number] = r.openOne(ctx, number, port.Secure)
	}
	if r.Opened != nil {
		r.Opened(slices.Sorted(maps.Keys(r.opened)))
	}
}

func (r *router) openOne(ctx context.Context, number int, secure bool) opened {
	ctx, cancel := context.WithCancel(ctx)
	r.listening.Go(func() { r.listen(ctx, number, secure, nil) })
	return opened{secure: secure, close: cancel}
}

// asked is the port by which clients ask that come to a port of this node.
func (r *router) asked(at int) int {
	if port := (*r.ports.Load())[at]; port != nil {
		return port.Number
	}
	return at
}

// find is the route of a request to a port: the one for the more specific host, of a Gateway rather than of an Ingress.
func (r *router) find(at int, name string, req *http.Request) (found *table.Route) {
	var host hosts.Host
	if port := (*r.ports.Load())[at]; port != nil {
		found, host = port.Lookup(name, req)
	}
	if at != r.Ports.HTTP && at != r.Ports.HTTPS {
		return found
	}
	if other, its := r.table.Load().Lookup(name, req.URL.Path); found == nil || other != nil && its.Specificity() > host.Specificity() {
		return other
	}
	return found
}

// certificate is the one for the more specific host, of a listener rather than of an Ingress, and at last of a listener for all names.
func (r *router) certificate(hello *tls.ClientHelloInfo, at int) *tls.Certificate {
	port := (*r.ports.Load())[at]
	if c := r.ofIngress(at, hello.ServerName, port); c != nil {
		return c
	}
	if port != nil {
		if c := port.Certificate(hello); c != nil {
			return c
		}
	}
	return r.unknown
}

// ofIngress is the certificate of an Ingress for the name, nil if a listener of the port, which may be nil, is as much for it. Without a
// name it is that of rules without a host, unless there is a listener for all names.
func (r *router) ofIngress(at int, name string, port *gateway.Port) *tls.Certificate {
	if at != r.Ports.HTTPS {
		return nil
	}
	found, host := r.table.Load().CertificateAt(name)
	if port != nil && port.Listener(name) != nil && port.Named(name).Specificity() >= host.Specificity() {
		return nil
	}
	return found
}

// owner is equal for two names if a connection for one may be used for the other.
func (r *router) owner(at int, name string) any {
	port := (*r.ports.Load())[at]
	if c := r.ofIngress(at, name, port); c != nil {
		return c
	}
	if port != nil {
		return port.Listener(name)
	}
	return nil
}
