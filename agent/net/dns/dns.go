package dns

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/agent/net/dns/records"
	"github.com/setpoint-io/setpoint/internal/clusterdns"
	"github.com/setpoint-io/setpoint/internal/shares"
)

const (
	// lookInterval is how often the node's resolv.conf is looked at, and whether the address is still there.
	lookInterval = 10 * time.Second
	// retryInterval is the pause after a port was taken.
	retryInterval = 5 * time.Second
)

// Network gives this machine the address of the Service, and leads what is sent to its Port to Ports.DNS.
type Network interface {
	// Hold makes it the machine's, and no other of ours; the zero Addr: none. Doing it again is no error.
	Hold(netip.Addr) error
	// Held is what an earlier agent left.
	Held() netip.Addr
	// Dropped is how many packets to the port were beyond the shares of those who sent them, and never arrived.
	Dropped() (uint64, error)
}

// Config of Watch; all fields but Kept, Listening, Ports and Settled are required.
type Config struct {
	// Informers are of all namespaces and must not have started.
	Informers informers.SharedInformerFactory
	// Client follows the ConfigMap.
	Client  kubernetes.Interface
	Network Network
	// Domain is the cluster's, "cluster.local".
	Domain string
	// ResolvConf is the node's file of servers; "" names none.
	ResolvConf string
	// Kept is the file in which the Services are kept for the next agent; "" keeps none.
	Kept string
	// Ports are those of the listeners.
	Ports Ports
	// Settled is told, once, that questions are answered from now on, or that others answer them.
	Settled func()
	// Listening is told whether a socket is open, by its name ("udp 10.96.0.10:9053"), at first and when that changes; err says why it is
	// not. Any goroutine calls it. Nil: nobody is told.
	Listening func(socket string, err error)
	// Problem is told what in the ConfigMap is not honoured.
	Problem func(about *corev1.ObjectReference, text string)
	Logger  *slog.Logger
}

// Ports are where is listened; the zero value: DefaultPorts.
type Ports struct{ DNS, Metrics uint16 }

// Port is where clients ask: what they send there is led to Ports.DNS, so that DNS servers of the machine may have it.
const Port = 53

// DefaultPorts: the metrics are where CoreDNS has them.
var DefaultPorts = Ports{DNS: 9053, Metrics: 9153}

// server is one running Watch.
type server struct {
	Config
	changed chan struct{} // holds one: more would say the same
	view    *view
	zone    atomic.Pointer[records.Zone] // set before anything listens
	routes  atomic.Pointer[routes]
	configs informers.SharedInformerFactory
	waiting *shares.Places // of questions to other servers
	metrics *metrics
	probe   probe
	told    map[string]bool // problems of the ConfigMap in force
	unkept  atomic.Bool     // Services or slices changed since they were kept
	settled func()
}

// Watch registers with the informers, before they start; run then serves until its context ends.
func Watch(c Config) (run func(context.Context)) { return newServer(c).run }

func newServer(c Config) *server {
	if c.Ports == (Ports{}) {
		c.Ports = DefaultPorts
	}
	c.Domain = strings.ToLower(strings.TrimSuffix(c.Domain, ".")) + "."
	s := &server{
		Config: c, changed: make(chan struct{}, 1), probe: newProbe(), settled: func() {},
		waiting: shares.New("questions to other servers", shares.Limits{All: waitingMax, Each: waitingEach}),
	}
	if s.Listening == nil {
		s.Listening = func(string, error) {}
	}
	if c.Settled != nil {
		s.settled = sync.OnceFunc(c.Settled)
	}
	s.metrics = newMetrics(s)
	s.view = newView(c.Informers)
	s.configs = informers.NewSharedInformerFactoryWithOptions(c.Client, 0, informers.WithNamespace(metav1.NamespaceSystem),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, clusterdns.ConfigMap).String()
		}))
	s.followNames()
	s.follow(c.Informers.Core().V1().Services().Informer(), clusterdns.Service)
	s.follow(s.configs.Core().V1().ConfigMaps().Informer(), clusterdns.ConfigMap)
	return s
}

// follow looks when an object of a name in kube-system changes.
func (s *server) follow(informer cache.SharedIndexInformer, name string) {
	look := func(o any) {
		if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = last.Obj
		}
		if m, ok := o.(metav1.Object); ok && m.GetName() == name && m.GetNamespace() == metav1.NamespaceSystem {
			s.look()
		}
	}
	// It fails only where an informer has stopped already.
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: look, UpdateFunc: func(_, o any) { look(o) }, DeleteFunc: look,
	})
}

func (s *server) look() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// run serves until ctx ends. The address stays the machine's: the next agent serves it.
func (s *server) run(ctx context.Context) {
	s.configs.StartWithContext(ctx)
	defer s.configs.Shutdown()
	var children sync.WaitGroup
	defer children.Wait()
	s.recall()
	children.Go(func() { s.keepNames(ctx) })
	s.route(ctx)
	serving := s.serve(ctx, s.Network.Held())
	defer func() { serving.stop() }()
	for probed := (*routes)(nil); ; {
		known := s.view.synced()
		if known {
			s.view.forget()
			serving = s.move(ctx, serving)
		}
		s.route(ctx)
		if now := s.routes.Load(); now != probed && serving.at.IsValid() {
			probed = now
			ready := serving.ready // serving may change while the probe waits
			children.Go(func() { s.dropLoops(ctx, now, ready) })
		}
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		case <-time.After(patience(known)):
		}
	}
}

// patience is short after a look that did not know the Services yet; whether they are known by now is for the next look.
func patience(known bool) time.Duration {
	if !known {
		return syncInterval
	}
	return lookInterval
}

// syncInterval is how often is looked whether the Services are known.
const syncInterval = 100 * time.Millisecond

// move serves where the Service is now.
func (s *server) move(ctx context.Context, now serving) serving {
	want, there := s.wanted()
	if err := s.Network.Hold(want); err != nil {
		s.Logger.Warn("the DNS of the cluster cannot have its address", "address", want, "err", err)
		return now // the next look tries again
	}
	if there && !want.IsValid() {
		s.settled()
	}
	if want == now.at {
		return now
	}
	now.stop()
	return s.serve(ctx, want)
}

// wanted is the address to serve at, and whether the Service is there; the zero Addr if others serve it, or nobody does.
func (s *server) wanted() (at netip.Addr, there bool) {
	service := s.view.objects().Service(metav1.NamespaceSystem, clusterdns.Service)
	if service == nil || service.Labels[clusterdns.ProxyLabel] != clusterdns.ProxyName {
		return netip.Addr{}, service != nil
	}
	at, _ = netip.ParseAddr(service.Spec.ClusterIP) // the zero Addr for one without
	return at, true
}
