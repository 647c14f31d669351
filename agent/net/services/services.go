package services

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/agent/net/network/upkeep"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

const (
	// settleTime collects changes that come together.
	settleTime = 20 * time.Millisecond
	// retryInterval is the pause after the network refused.
	retryInterval = 5 * time.Second
	// ofService indexes slices by the Service they belong to.
	ofService = "setpoint/service"
)

// Network is what leads addresses to endpoints; network.Translation is one.
type Network interface {
	// Replace sets all Services. It is called first, and after an error of Change.
	Replace(all []network.Service) error
	Change(now []network.Service, gone []network.ServiceAddress) error
	// Damaged says that somebody else has taken away what was set.
	Damaged() (bool, error)
}

// Config of Watch; fields are required unless they say what nil is.
type Config struct {
	NodeName string
	// Informers must not have started. Nodes have at least our own Node.
	Informers, Nodes informers.SharedInformerFactory
	Network          Network
	// Reserved knows what no Service takes of the machines, once Known say that it knows all. Nil: Services may take everything.
	Reserved *reserved.Book
	Known    []cache.InformerSynced
	// Refused is told, on one node of the cluster, what of a Service is not served and why. Nil is allowed.
	Refused func(service types.NamespacedName, why string)
	// Announce is told which addresses of load balancers this node announces; nil: none are announced.
	Announce func([]netip.Addr)
	// HealthFailed is told of a Service whose health port cannot be opened. Nil is allowed.
	HealthFailed func(service types.NamespacedName, port uint16, err error)
	Logger       *slog.Logger
}

// Watch registers with the informers, before they start; run then works until its context ends. thing is what the node has to hold.
func Watch(c Config) (run func(context.Context), thing upkeep.Thing) {
	w := &watch{
		Config: c, changed: make(chan struct{}, 1), again: make(chan chan error), dirty: map[types.NamespacedName]bool{},
		announcing: map[string]announcer{}, book: newBook(),
		refused: map[types.NamespacedName]string{}, toldRefused: map[types.NamespacedName]string{},
	}
	if w.Reserved != nil {
		w.Reserved.OnChange(w.bookChanged)
	}
	_ = w.slices().AddIndexers(cache.Indexers{ofService: serviceOfSlice})
	w.follow(w.Informers.Core().V1().Services().Informer(), func(o any) {
		if s, ok := o.(*corev1.Service); ok {
			w.mark(types.NamespacedName{Namespace: s.Namespace, Name: s.Name})
		}
	})
	w.follow(w.slices(), func(o any) {
		if s, ok := o.(*discoveryv1.EndpointSlice); ok {
			w.mark(types.NamespacedName{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]})
		}
	})
	w.follow(w.Nodes.Core().V1().Nodes().Informer(), func(o any) {
		if n, ok := o.(*corev1.Node); ok {
			w.seeNode(n.Name)
		}
	})
	return w.run, upkeep.Thing{Name: "the rules of Services", Whole: w.whole, PutBack: w.putBack}
}

// whole looks at the rules once there are any.
func (w *watch) whole() (bool, error) {
	if !w.toldOnce.Load() {
		return true, nil
	}
	damaged, err := w.Network.Damaged()
	return !damaged, err
}

// putBack has run set everything again, and returns once it has.
func (w *watch) putBack(ctx context.Context) error {
	done := make(chan error, 1)
	select {
	case w.again <- done:
		return <-done
	case <-ctx.Done():
		return ctx.Err()
	}
}

// follow looks at each object that comes, was or goes.
func (w *watch) follow(informer cache.SharedIndexInformer, look func(any)) {
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: look, UpdateFunc: func(was, is any) { look(was); look(is) }, DeleteFunc: func(o any) {
			if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			look(o)
		}})
	if err == nil { // it fails only where the informer has stopped already
		w.synced = append(w.synced, handler.HasSynced)
	}
}

func serviceOfSlice(o any) ([]string, error) {
	s, ok := o.(*discoveryv1.EndpointSlice)
	if !ok || s.Labels[discoveryv1.LabelServiceName] == "" {
		return nil, nil
	}
	return []string{s.Namespace + "/" + s.Labels[discoveryv1.LabelServiceName]}, nil
}

// watch is one running Watch. changed holds one: more would say the same. mu guards what stands below it up to zone; the rest is
// run's.
type watch struct {
	Config
	changed chan struct{}
	// again asks run to set everything again, and to tell how that went; toldOnce says that there is something.
	again    chan chan error
	toldOnce atomic.Bool
	synced   []cache.InformerSynced // all objects that were there have been looked at

	mu         sync.Mutex
	dirty      map[types.NamespacedName]bool
	announcing map[string]announcer // what each node may announce
	moved      bool                 // our Node is in another zone, or something else is reserved: all Services may lead elsewhere
	zone       string

	book *book
	told bool // the network has what the book says
	// refused are the Services of which not all is served, toldRefused what was told of them.
	refused, toldRefused map[types.NamespacedName]string
}

func (w *watch) slices() cache.SharedIndexInformer {
	return w.Informers.Discovery().V1().EndpointSlices().Informer()
}

func (w *watch) mark(name types.NamespacedName) {
	w.mu.Lock()
	w.dirty[name] = true
	w.mu.Unlock()
	w.look()
}

// seeNode looks at a node that may have come, gone, or be in another zone.
func (w *watch) seeNode(name string) {
	n, err := w.Nodes.Core().V1().Nodes().Lister().Get(name)
	if err != nil {
		n = &corev1.Node{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if zone := n.Labels[corev1.LabelTopologyZone]; name == w.NodeName && zone != w.zone {
		w.zone, w.moved = zone, true
		w.look()
	}
	if may := announcerOf(n); may != w.announcing[name] {
		w.announcing[name] = may
		w.look()
	}
	if err != nil {
		delete(w.announcing, name)
	}
}

func (w *watch) look() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *watch) run(ctx context.Context) {
	if !cache.WaitForCacheSync(ctx.Done(), slices.Concat(w.synced, w.Known)...) {
		return
	}
	answers := newHealthAnswers(w.HealthFailed)
	defer answers.close()
	w.look() // a cluster without Services is known too
	for {
		var done chan<- error // of who waits for this round; it holds one
		select {
		case <-ctx.Done():
			return
		case done = <-w.again:
			w.told = false
		case <-w.changed:
			if !wait.For(ctx, settleTime) {
				return
			}
		}
		err := w.tell()
		if done != nil {
			done <- err
		}
		if err != nil {
			w.Logger.Warn("Services cannot be reached at their addresses", "err", err)
			if !wait.For(ctx, retryInterval) {
				return
			}
			w.look()
		}
		answers.set(w.book.healthPorts())
		w.elect()
		w.tellRefused()
	}
}

// elect announces what is this node's to announce. A node that hears nothing of the cluster does not come here.
func (w *watch) elect() {
	if w.Announce == nil {
		return
	}
	w.mu.Lock()
	nodes := maps.Clone(w.announcing)
	w.mu.Unlock()
	var all []pooled
	for _, p := range w.book.plans {
		if len(p.pooled.ips) > 0 {
			all = append(all, p.pooled)
		}
	}
	w.Announce(elected(all, nodes, w.NodeName))
}

// tell hands on what is different from what was told last.
func (w *watch) tell() error {
	var now []network.Service
	var gone []network.ServiceAddress
	for address, was := range w.replan() {
		switch is, ok := w.book.at(address); {
		case !ok:
			gone = append(gone, address)
		case !is.Equal(was):
			now = append(now, is)
		}
	}
	switch {
	case !w.told:
		err := w.Network.Replace(w.book.all())
		if w.told = err == nil; w.told {
			w.toldOnce.Store(true)
		}
		return err
	case len(now)+len(gone) > 0:
		err := w.Network.Change(now, gone)
		w.told = err == nil
		return err
	}
	return nil
}

// replan brings the book up to date. It returns the addresses of all Services that have changed and what they led to before; one
// that led nowhere has the zero Service.
func (w *watch) replan() map[network.ServiceAddress]network.Service {
	names, here := w.take()
	before := map[network.ServiceAddress]network.Service{}
	for name := range names {
		next := w.entry(name, here)
		for _, s := range slices.Concat(next.addresses, w.book.plans[name].addresses) {
			if _, seen := before[s.ServiceAddress]; !seen {
				before[s.ServiceAddress], _ = w.book.at(s.ServiceAddress)
			}
		}
		w.book.put(name, next)
		w.noteRefused(name, next.refused)
	}
	return before
}

// take returns the Services to look at.
func (w *watch) take() (names map[types.NamespacedName]bool, here Place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	names, here = w.dirty, Place{w.NodeName, w.zone}
	w.dirty = map[types.NamespacedName]bool{}
	if w.moved {
		w.moved = false
		all, _ := w.Informers.Core().V1().Services().Lister().List(labels.Everything())
		for _, s := range all {
			names[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}] = true
		}
	}
	return names, here
}

func (w *watch) entry(name types.NamespacedName, here Place) entry {
	s, err := w.Informers.Core().V1().Services().Lister().Services(name.Namespace).Get(name.Name)
	if err != nil { // it is gone
		return entry{}
	}
	found, _ := w.slices().GetIndexer().ByIndex(ofService, name.String())
	var behind []*discoveryv1.EndpointSlice
	for _, o := range found {
		if slice, ok := o.(*discoveryv1.EndpointSlice); ok {
			behind = append(behind, slice)
		}
	}
	return entry{plan(s, behind, here).withoutReserved(w.Reserved, here.Node), s.CreationTimestamp.Unix()}
}
