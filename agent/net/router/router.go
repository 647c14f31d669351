package router

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/agent/net/router/gateway"
	"github.com/setpoint-io/setpoint/agent/net/router/table"
	"github.com/setpoint-io/setpoint/internal/gatewayapi"
	"github.com/setpoint-io/setpoint/internal/reserved"
	"github.com/setpoint-io/setpoint/internal/shares"
)

// settleTime collects changes that come together.
const settleTime = 20 * time.Millisecond

// restFactor is how many times as long as a build takes nothing is built after it, so that endless changes take a fifth of a core.
const restFactor = 4

// Ports are where a node serves Ingresses; 0: nowhere.
type Ports struct{ HTTP, HTTPS int }

// Any tells whether anything is served.
func (p Ports) Any() bool { return p.HTTP != 0 || p.HTTPS != 0 }

// byNumber says of each port that is served whether it speaks TLS.
func (p Ports) byNumber() map[int]bool {
	all := map[int]bool{p.HTTP: false, p.HTTPS: true}
	delete(all, 0)
	return all
}

// Config of Watch; all fields are required, but a port may be 0.
type Config struct {
	// Informers are of all namespaces and must not have started.
	Informers informers.SharedInformerFactory
	// Client reads the Secrets with certificates.
	Client kubernetes.Interface
	Ports  Ports
	// Nodes tells of all nodes, and so whether the one of this name may serve (reserved.Edges). Nil: it may.
	Nodes    informers.SharedInformerFactory
	NodeName string
	// Gateways reads the objects of the Gateway API; nil: no Gateways are served.
	Gateways dynamic.Interface
	// Listening is told whether a port of Ports is open, at first and when that changes; err says why it is not. Nil: nobody is.
	Listening func(port int, err error)
	// Reserved are ports of machines that Gateways do not get.
	Reserved *reserved.Book
	// Opened is told the ports that are open for Gateways alone, after each change; nil: nobody is.
	Opened  func(ports []int)
	Metrics *Metrics
	// AccessLog gets a line of JSON for each request. Nil: there is none.
	AccessLog io.Writer
	Logger    *slog.Logger
}

// Watch registers with the informers, before they start; run then serves until its context ends.
func Watch(c Config) (run func(context.Context), err error) {
	r, err := newRouter(c, dial)
	if err != nil {
		return nil, err
	}
	return r.run, nil
}

func newRouter(c Config, dial dialer) (*router, error) {
	r := &router{
		Config: c, dial: dial, changed: make(chan struct{}, 1), opened: map[int]opened{},
		mirrors:  shares.New("copies of requests", shares.Limits{All: mirrorsMax, Privileged: mirrorsMax}),
		requests: shares.New("requests at ports of this node", requestLimits()),
		door:     newDoor(),
	}
	r.table.Store(&table.Table{})
	r.ports.Store(&ports{})
	if c.Gateways != nil {
		r.objects = gatewayapi.NewWatcher(gatewayapi.Config{
			Client: c.Gateways, Discovery: c.Client.Discovery(), Changed: r.gatewayChanged, Logger: c.Logger,
		})
	}
	if c.AccessLog != nil {
		r.access = newAccessLog(c.AccessLog, c.Metrics)
	}
	r.secrets = gatewayapi.NamedSecrets(c.Client, table.CertificateOf, r.look, c.Logger)
	r.ofGateways = gatewayapi.NamedSecrets(c.Client, table.CertificateOf, r.look, c.Logger)
	r.authorities = gatewayapi.NamedConfigMaps(c.Client, table.AuthoritiesOf, r.look, c.Logger)
	var err error
	if r.unknown, err = selfSigned(); err != nil {
		return nil, err
	}
	r.proxy = r.newProxy(newTransports(dial, r.endpointsNow))
	r.Reserved.OnChange(r.look)
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { r.look() }, UpdateFunc: func(any, any) { r.look() }, DeleteFunc: func(any) { r.look() },
	}
	for _, informer := range r.informers() {
		// It fails only where an informer has stopped already.
		_, _ = informer.AddEventHandler(handler)
	}
	r.followEdges()
	byService := cache.Indexers{serviceIndex: func(o any) ([]string, error) {
		s, ok := o.(*discoveryv1.EndpointSlice)
		if !ok {
			return nil, errNoSlice
		}
		return []string{s.Namespace + "/" + s.Labels[discoveryv1.LabelServiceName]}, nil
	}}
	return r, c.Informers.Discovery().V1().EndpointSlices().Informer().AddIndexers(byService)
}

// serviceIndex finds EndpointSlices by namespace and Service.
const serviceIndex = "router/service"

var errNoSlice = errors.New("router: not an EndpointSlice")

func (r *router) informers() []cache.SharedIndexInformer {
	all := []cache.SharedIndexInformer{
		r.Informers.Networking().V1().Ingresses().Informer(),
		r.Informers.Networking().V1().IngressClasses().Informer(),
		r.Informers.Core().V1().Services().Informer(),
		r.Informers.Discovery().V1().EndpointSlices().Informer(),
	}
	if r.objects != nil {
		all = append(all, r.Informers.Core().V1().Namespaces().Informer())
	}
	return all
}

func (r *router) look() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *router) run(ctx context.Context) {
	if !r.synced(ctx) {
		return
	}
	if r.access != nil {
		defer r.logAccess(ctx)()
	}
	var children sync.WaitGroup
	defer children.Wait()
	if r.objects != nil {
		children.Go(func() { r.objects.Run(ctx) })
	}
	r.openShared(ctx, r.build(ctx)) // the table is made before anybody asks
	r.follow(ctx, r.openShared)
	r.listening.Wait()
	r.mirroring.Wait() // each ends by mirrorTimeout
}

// synced waits until everything is known, and returns false if ctx ends before.
func (r *router) synced(ctx context.Context) bool {
	all := r.informers()
	if r.Nodes != nil {
		all = append(all, r.Nodes.Core().V1().Nodes().Informer())
	}
	for _, informer := range all {
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return false
		}
	}
	return true
}

// logAccess writes the access log until it is told that nobody asks any more.
func (r *router) logAccess(ctx context.Context) (end func()) {
	live, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var writing sync.WaitGroup
	writing.Go(func() { r.access.run(live) })
	return func() { cancel(); writing.Wait() }
}

// follow keeps the table until ctx ends. After each change, built is told whether this node may serve.
func (r *router) follow(ctx context.Context, built func(ctx context.Context, may bool)) {
	defer r.authorities.Stop()
	defer r.secrets.Stop()
	defer r.ofGateways.Stop()
	defer r.open(ctx, nil) // closes them
	for took := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-r.changed:
		}
		if !wait.For(ctx, max(settleTime, restFactor*took)) {
			return
		}
		begun := time.Now()
		built(ctx, r.build(ctx))
		took = time.Since(begun)
	}
}

// build makes the table of what is known now, and returns whether this node may serve: if not, the table is empty and no Secret is read.
// The problems are told by controllers/ingress, once for all nodes.
func (r *router) build(ctx context.Context) (may bool) {
	classes, _ := r.Informers.Networking().V1().IngressClasses().Lister().List(labels.Everything())
	all, _ := r.Informers.Networking().V1().Ingresses().Lister().List(labels.Everything())
	objects, served := r.gatewayObjects()
	if may = r.mayServe(); !may {
		classes, objects.Classes = nil, nil
	}
	ours := table.Ours(classes, all)
	r.secrets.Want(ctx, table.Secrets(ours))
	r.ofGateways.Want(ctx, gatewayapi.SecretNames(&objects))
	gateways, claims := &gateway.Result{}, table.Claims(ours)
	if served {
		gateways = r.buildGateways(ctx, objects, claims)
	}
	built, _ := table.Build(table.Input{
		Classes: classes, Ingresses: ours, Slices: r.slices, Certificate: known(r.secrets),
		Service: table.ServiceFrom(r.Informers.Core().V1().Services().Lister()), Hosts: gateways.Hosts,
	})
	r.table.Store(built)
	r.Metrics.keep(owners(ours, &objects))
	if served {
		r.serveGateways(ctx, gateways)
	}
	r.Metrics.cut.Set(float64(r.secrets.Cut() + r.ofGateways.Cut() + r.authorities.Cut()))
	return may
}

// owners are all that requests may be for, in an order that stays.
func owners(ingresses []*networkingv1.Ingress, objects *gatewayapi.Objects) (all []owner) {
	for _, i := range ingresses {
		all = append(all, owner{"Ingress", i.Namespace, i.Name})
	}
	for _, route := range objects.HTTPRoutes {
		all = append(all, owner{gateway.HTTPRoute, route.Namespace, route.Name})
	}
	for _, route := range objects.GRPCRoutes {
		all = append(all, owner{gateway.GRPCRoute, route.Namespace, route.Name})
	}
	slices.SortFunc(all, func(a, b owner) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	return all
}

func (r *router) slices(namespace, service string) (found []*discoveryv1.EndpointSlice) {
	objects, _ := r.Informers.Discovery().V1().EndpointSlices().Informer().GetIndexer().ByIndex(serviceIndex, namespace+"/"+service)
	for _, o := range objects {
		if s, ok := o.(*discoveryv1.EndpointSlice); ok {
			found = append(found, s)
		}
	}
	return found
}
