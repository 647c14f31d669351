package hostfirewall

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/agent/net/network/upkeep"
)

const (
	// settleTime collects changes that come together.
	settleTime = 20 * time.Millisecond
	// retryInterval is the pause after the kernel refused.
	retryInterval = 5 * time.Second
)

// Network is where ports are closed.
type Network interface {
	// Apply leaves pods of these ranges the ports only. It replaces what was applied before.
	Apply(pods []netip.Prefix, open []Port) error
	// Intact reports whether what Apply made is still there.
	Intact() (bool, error)
	// Exists reports whether there are rules, of this process or of a former one.
	Exists() (bool, error)
}

// Config of New; all fields are required.
type Config struct {
	// Everywhere has Services and EndpointSlices, Here the pods of this node. Neither must have started.
	Everywhere, Here informers.SharedInformerFactory
	// Own are this node's addresses, Pods the ranges of the cluster's pods. They are asked once the informers have started.
	Own  func() []netip.Addr
	Pods func() []netip.Prefix
	// Listening are the agent's own ports that pods reach.
	Listening []Port
	Network   Network
	Logger    *slog.Logger
}

// Watch keeps the ports closed. mu guards gateways. applying comes before mu, and is held from where a list is computed until the network
// has it: else an older list could replace a newer one.
type Watch struct {
	Config
	changed  chan struct{} // holds one: more would say the same
	applying sync.Mutex
	mu       sync.Mutex
	gateways []Port
	known    atomic.Bool // the cluster's Services were applied once
}

// New registers with the informers, before they start.
func New(c Config) *Watch {
	w := &Watch{Config: c, changed: make(chan struct{}, 1)}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { w.look() }, UpdateFunc: func(any, any) { w.look() }, DeleteFunc: func(any) { w.look() },
	}
	for _, informer := range w.informers() {
		_, _ = informer.AddEventHandler(handler) // before the start it cannot fail
	}
	return w
}

func (w *Watch) informers() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{
		w.Everywhere.Core().V1().Services().Informer(), w.Everywhere.Discovery().V1().EndpointSlices().Informer(),
		w.Here.Core().V1().Pods().Informer(),
	}
}

// Begin leaves pods the agent's own ports only, until Run knows of others; it is called before the first pod starts. Rules of a former
// agent stay: they know more.
func (w *Watch) Begin() {
	w.applying.Lock()
	defer w.applying.Unlock()
	if exists, err := w.Network.Exists(); err == nil && exists {
		return
	}
	if err := w.Network.Apply(w.Pods(), World{Listening: w.Listening}.Ports()); err != nil {
		w.Logger.Warn("pods reach all ports of this node", "err", err)
	}
}

// Thing is what the node has to hold. Before the cluster's Services are known, the rules are those of Begin or of a former agent.
func (w *Watch) Thing() upkeep.Thing {
	return upkeep.Thing{
		Name: "the rules that keep pods from the node's ports", Guards: true, Whole: w.whole,
		PutBack: func(context.Context) error { return w.tell() },
	}
}

func (w *Watch) whole() (bool, error) {
	if !w.known.Load() {
		return true, nil
	}
	return w.Network.Intact()
}

// OpenGateways opens these ports of TCP instead of those that it opened before. Any goroutine may call it.
func (w *Watch) OpenGateways(numbers []int) {
	var ports []Port
	for _, number := range numbers {
		ports = append(ports, TCP(number))
	}
	w.mu.Lock()
	w.gateways = ports
	w.mu.Unlock()
	w.look()
}

func (w *Watch) look() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Run follows the API until ctx ends. The rules stay.
func (w *Watch) Run(ctx context.Context) {
	for _, informer := range w.informers() {
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return
		}
	}
	w.look()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
		}
		if !wait.For(ctx, settleTime) || !w.apply(ctx) {
			return
		}
	}
}

// apply returns false when ctx has ended.
func (w *Watch) apply(ctx context.Context) bool {
	err := w.tell()
	if err == nil {
		return true
	}
	w.Logger.Warn("pods reach ports of this node as they did before", "err", err)
	w.look()
	return wait.For(ctx, retryInterval)
}

// tell computes the list and applies it, in one step.
func (w *Watch) tell() error {
	w.applying.Lock()
	defer w.applying.Unlock()
	err := w.Network.Apply(w.Pods(), w.open())
	if err == nil {
		w.known.Store(true)
	}
	return err
}

func (w *Watch) open() []Port {
	w.mu.Lock()
	now := World{Own: w.Own(), Listening: slices.Concat(w.Listening, w.gateways)}
	w.mu.Unlock()
	// Caches know no errors.
	now.Services, _ = w.Everywhere.Core().V1().Services().Lister().List(labels.Everything())
	now.Slices, _ = w.Everywhere.Discovery().V1().EndpointSlices().Lister().List(labels.Everything())
	now.Pods, _ = w.Here.Core().V1().Pods().Lister().List(labels.Everything())
	return now.Ports()
}
