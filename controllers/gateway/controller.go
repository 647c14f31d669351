package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/setpoint-io/setpoint/agent/net/router/gateway"
	"github.com/setpoint-io/setpoint/agent/net/router/table"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/internal/gatewayapi"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

const controllerName = "gateway-controller"

// New keeps the statuses. With ownAddresses each Gateway has an address of its own, of the pool of load balancers.
func New(ownAddresses bool) reconcile.Controller {
	return reconcile.Controller{
		Name: controllerName, Reads: []reconcile.Read{
			reconcile.Services, reconcile.EndpointSlices, reconcile.Nodes, reconcile.Namespaces, ingresses, classes,
		},
		Run: func(ctx context.Context, env *reconcile.Env) error {
			if env.REST == nil {
				return reconcile.Idle(ctx)
			}
			client, err := dynamic.NewForConfig(env.REST)
			if err != nil {
				return err
			}
			return run(ctx, env, client, ownAddresses)
		},
	}
}

// everything is the only key: whether a route is served as it says depends on all others.
var everything = reconcile.Key{Name: "gateways"}

type controller struct {
	env    *reconcile.Env
	client dynamic.Interface
	// ownAddresses: each Gateway has one.
	ownAddresses bool
	watcher      atomic.Pointer[gatewayapi.Watcher]
	// live is until when objects are followed that others name; this and they are set before watcher.
	live        context.Context
	secrets     *gatewayapi.Named[*tls.Certificate]
	authorities *gatewayapi.Named[*table.Authorities]
	services    reconcile.Cache[*corev1.Service]
	slices      reconcile.Cache[*discoveryv1.EndpointSlice]
	nodes       reconcile.Cache[*corev1.Node]
	namespaces  reconcile.Cache[*corev1.Namespace]
	ingresses   reconcile.Cache[*networkingv1.Ingress]
	classes     reconcile.Cache[*networkingv1.IngressClass]
	// told are the events of hosts that others have, of the last pass.
	told map[loss]bool
	// written are the versions of objects whose status was written, or that were too old for it: the next version comes by itself.
	written map[types.UID]string
}

func run(ctx context.Context, env *reconcile.Env, client dynamic.Interface, ownAddresses bool) error {
	c := &controller{
		env: env, client: client, ownAddresses: ownAddresses, written: map[types.UID]string{},
		services: reconcile.Services.From(env), slices: reconcile.EndpointSlices.From(env),
		nodes: reconcile.Nodes.From(env), namespaces: reconcile.Namespaces.From(env),
		ingresses: ingresses.From(env), classes: classes.From(env),
	}
	return reconcile.Run(ctx, reconcile.Config{
		Name: "gateway", Reconcile: c.reconcile, Workers: 1, Rests: reconcile.RestsWhole, Env: env, Feeds: []reconcile.Feed{c.follow},
		Sources: []reconcile.Source{
			reconcile.Changes(c.services, c.serviceChanged), reconcile.Changes(c.nodes, c.nodeChanged),
			reconcile.Changes(c.namespaces, c.ifUsed), reconcile.Changes(c.slices, c.sliceChanged),
			reconcile.Changes(c.ingresses, c.ifUsed), reconcile.Changes(c.classes, c.ifUsed),
		},
	})
}

// follow adds the key when an object of the Gateway API changes, or one that it names.
func (c *controller) follow(ctx context.Context, add func(reconcile.Key)) {
	changed := func() { add(everything) }
	c.live = ctx
	c.secrets = gatewayapi.NamedSecrets(c.env.Client, table.CertificateOf, changed, c.env.Logger)
	c.authorities = gatewayapi.NamedConfigMaps(c.env.Client, table.AuthoritiesOf, changed, c.env.Logger)
	defer c.secrets.Stop()
	defer c.authorities.Stop()
	objects := gatewayapi.NewWatcher(gatewayapi.Config{
		Client: c.client, Discovery: c.env.Client.Discovery(), Logger: c.env.Logger,
		Changed: func(metav1.Object, metav1.Object) { add(everything) },
	})
	c.watcher.Store(objects)
	objects.Run(ctx)
}

// used tells whether there are Gateways at all: only then does anything else matter.
func (c *controller) used() bool {
	objects, known := c.known()
	return known && len(objects.Gateways) > 0
}

func (c *controller) known() (gatewayapi.Objects, bool) {
	if watcher := c.watcher.Load(); watcher != nil {
		return watcher.Objects()
	}
	return gatewayapi.Objects{}, false
}

func (c *controller) serviceChanged(before, after metav1.Object) []reconcile.Key {
	same := before != nil && after != nil && before.GetGeneration() == after.GetGeneration() && before.GetGeneration() != 0
	if same && !isOurs(after) && sameAddresses(before, after) || !c.used() {
		return nil
	}
	return []reconcile.Key{everything}
}

// sameAddresses: a Service that has a port of nodes keeps it from younger Gateways.
func sameAddresses(before, after metav1.Object) bool {
	was, _ := before.(*corev1.Service)
	is, _ := after.(*corev1.Service)
	return was != nil && is != nil && apiequality.Semantic.DeepEqual(was.Status.LoadBalancer, is.Status.LoadBalancer)
}

func (c *controller) ifUsed(_, _ metav1.Object) []reconcile.Key {
	if !c.used() {
		return nil
	}
	return []reconcile.Key{everything}
}

// nodeChanged: only whether a node serves, and where, matters.
func (c *controller) nodeChanged(before, after metav1.Object) []reconcile.Key {
	was, _ := before.(*corev1.Node)
	is, _ := after.(*corev1.Node)
	if !table.AddressesChanged(was, is) && !(c.used() && reserved.Changed(before, after)) {
		return nil
	}
	return []reconcile.Key{everything}
}

// sliceChanged: only which ports servers have matters.
func (c *controller) sliceChanged(before, after metav1.Object) []reconcile.Key {
	if !c.used() || !reserved.Changed(before, after) {
		return nil
	}
	return []reconcile.Key{everything}
}

func (c *controller) reconcile(ctx context.Context, _ reconcile.Key) (time.Duration, error) {
	objects, known := c.known()
	if !known {
		return 0, nil // it comes again when they are
	}
	nodes, err := c.nodes.List("", nil)
	if err != nil {
		return 0, err
	}
	c.forget(&objects)
	c.secrets.Want(c.live, gatewayapi.SecretNames(&objects))
	c.authorities.Want(c.live, gatewayapi.Authorities(&objects))
	served, err := c.served()
	if err != nil {
		return 0, err
	}
	addresses := table.Addresses(nodes)
	failed := c.keepClasses(ctx, objects.Classes, len(addresses) > 0)
	result := gateway.Build(gateway.Input{
		Objects: objects, Namespace: c.labelsOf, Service: c.service, Shared: reserved.SharedPorts(nodes), Hosts: table.Claims(served),
		Reserved: c.book(nodes), Services: c.allServices,
		Slices:      func(string, string) []*discoveryv1.EndpointSlice { return nil },
		Certificate: func(namespace, name string) (*tls.Certificate, error) { return c.certificate(ctx, namespace, name) },
		Authorities: func(namespace, name string) (*table.Authorities, error) { return c.authority(ctx, namespace, name) },
	})
	reachable := map[types.NamespacedName]bool{}
	for i := range result.Gateways {
		own, err := c.address(ctx, &result.Gateways[i], addresses)
		g := result.Gateways[i].Gateway
		reachable[types.NamespacedName{Namespace: g.Namespace, Name: g.Name}] = len(own) > 0
		failed = errors.Join(failed, err, c.setGateway(ctx, &result.Gateways[i], own, len(addresses) > 0, c.lacks(g, err)))
	}
	for i := range result.Sets {
		failed = errors.Join(failed, c.setListenerSet(ctx, &result.Sets[i], reachable))
	}
	for i := range result.Routes {
		failed = errors.Join(failed, c.setRoute(ctx, &result.Routes[i]))
	}
	for i := range result.Policies {
		failed = errors.Join(failed, c.setPolicy(ctx, &result.Policies[i]))
	}
	c.tell(result, served)
	return 0, failed
}

// forget lets go of what was written to objects that are gone.
func (c *controller) forget(known *gatewayapi.Objects) {
	versions := map[types.UID]string{}
	keep := func(o metav1.Object) {
		if version := c.written[o.GetUID()]; version != "" {
			versions[o.GetUID()] = version
		}
	}
	for _, o := range known.Classes {
		keep(o)
	}
	for _, o := range known.Gateways {
		keep(o)
	}
	for _, o := range known.HTTPRoutes {
		keep(o)
	}
	for _, o := range known.GRPCRoutes {
		keep(o)
	}
	for _, o := range known.ListenerSets {
		keep(o)
	}
	for _, o := range known.TLSRoutes {
		keep(o)
	}
	for _, o := range known.BackendTLSPolicies {
		keep(o)
	}
	c.written = versions
}

// book knows which ports of machines no Gateway has.
func (c *controller) book(nodes []*corev1.Node) *reserved.Book {
	servers, _ := c.slices.Get(reserved.Servers) // without them the usual ports are reserved
	return reserved.Of(nodes, servers)
}

func (c *controller) labelsOf(name string) map[string]string {
	namespace, err := c.namespaces.Get(reconcile.Key{Name: name})
	if err != nil {
		return nil
	}
	return namespace.Labels
}

func (c *controller) service(namespace, name string) *corev1.Service {
	service, err := c.services.Get(reconcile.Key{Namespace: namespace, Name: name})
	if err != nil {
		return nil
	}
	return service
}

func (c *controller) allServices() []*corev1.Service {
	all, err := c.services.List("", nil)
	if err != nil {
		return nil // this cache has no errors
	}
	return all
}

// certificate and authority ask for what is not known yet, so that nothing is called missing that is not.
func (c *controller) certificate(ctx context.Context, namespace, name string) (*tls.Certificate, error) {
	if known, final, err := c.secrets.Value(namespace, name); final {
		return known, err
	}
	secret, err := c.env.Client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return table.CertificateOf(secret)
}

func (c *controller) authority(ctx context.Context, namespace, name string) (*table.Authorities, error) {
	if known, final, err := c.authorities.Value(namespace, name); final {
		return known, err
	}
	configMap, err := c.env.Client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return table.AuthoritiesOf(configMap)
}
