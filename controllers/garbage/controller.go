package garbage

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

const (
	// workers is how many objects are judged at once.
	workers = 20
	// monitorInterval is how often new kinds are looked for.
	monitorInterval = 2 * time.Second
	// unseenInterval is at most between two looks at an owner of a kind without a monitor.
	unseenInterval = time.Minute
	// unsyncedDelay is how soon an owner is looked at again while some kind's
	// cache is not filled: its dependents could be missed.
	unsyncedDelay = 100 * time.Millisecond
	// mapperLifetime is how long a failed look at the kinds is believed.
	mapperLifetime = 2 * time.Second
	// absentLimit bounds the memory of owners known to be gone.
	absentLimit = 4096
)

// Monitors are the informers of all kinds that may own or be owned.
type Monitors = map[schema.GroupVersionResource]cache.SharedIndexInformer

// New collects garbage. monitors is called every monitorInterval; a kind that leaves is forgotten.
func New(monitors func() Monitors) reconcile.Controller {
	return reconcile.Controller{Name: "garbage-collector-controller", Account: "generic-garbage-collector", Run: func(ctx context.Context, env *reconcile.Env) error {
		c := &controller{env: env, source: monitors, monitors: Monitors{}, absent: map[identity]bool{}}
		return c.run(ctx)
	}}
}

// controller is one term of the collector.
type controller struct {
	env    *reconcile.Env
	source func() Monitors

	mu       sync.Mutex
	monitors Monitors
	absent   map[identity]bool // owners that a live read did not find; uids never return

	mapping sync.Mutex // held during discovery; never together with mu
	mapper  meta.RESTMapper
	mapped  time.Time
	known   map[schema.GroupVersionKind]*meta.RESTMapping // what mapper has answered
}

func (c *controller) run(ctx context.Context) error {
	return reconcile.Run(ctx, reconcile.ConfigOf[object]{
		Name:      "garbage",
		Queue:     "garbage_collector_attempt_to_delete",
		Reconcile: c.reconcile,
		Feeds:     []reconcile.FeedOf[object]{c.watch},
		Workers:   workers,
		Env:       c.env,
	})
}

// prepare creates the indexes that the collector reads on a set of monitors.
func prepare(monitors Monitors) error {
	var errs []error
	for _, informer := range monitors {
		errs = append(errs, index(informer))
	}
	return errors.Join(errs...)
}

// object names one object of any kind.
type object struct {
	resource  schema.GroupVersionResource
	namespace string
	name      string
}

// watch follows every monitor, and new kinds as they come.
func (c *controller) watch(ctx context.Context, add func(object)) {
	stops := map[schema.GroupVersionResource]func(){}
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	ticker := c.env.Clock.NewTicker(monitorInterval)
	defer ticker.Stop()
	for {
		c.follow(stops, add)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// follow subscribes to new kinds and leaves those that went.
func (c *controller) follow(stops map[schema.GroupVersionResource]func(), add func(object)) {
	now := c.source()
	var left []any // what a monitor that went had last: it may have missed their end
	for resource, stop := range stops {
		if before := c.monitor(resource); now[resource] == nil || now[resource] != before {
			stop()
			delete(stops, resource)
			left = append(left, before.GetStore().List()...)
		}
	}
	// All indexes before any event: an owner must be found from the first on.
	if err := prepare(unfollowed(now, stops)); err != nil {
		c.env.Logger.Error("some kinds are not watched for garbage", "err", err)
	}
	c.mu.Lock()
	c.monitors = now
	c.mu.Unlock()
	if len(left) > 0 {
		c.forgetKinds()
	}
	for _, obj := range left {
		c.gone(reconcile.ObjectOf(obj), add)
	}
	for resource, informer := range now {
		if stops[resource] != nil {
			continue
		}
		registration, err := informer.AddEventHandler(c.handler(resource, add))
		if err != nil {
			continue // it has stopped: the next look gets its successor
		}
		stops[resource] = func() { _ = informer.RemoveEventHandler(registration) }
	}
}

// unfollowed are the monitors without a handler of this term, whose indexes it has not made.
func unfollowed(monitors Monitors, followed map[schema.GroupVersionResource]func()) Monitors {
	fresh := Monitors{}
	for resource, informer := range monitors {
		if followed[resource] == nil {
			fresh[resource] = informer
		}
	}
	return fresh
}

func (c *controller) monitor(resource schema.GroupVersionResource) cache.SharedIndexInformer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.monitors[resource]
}

// handler turns the events of one kind into objects to judge.
func (c *controller) handler(resource schema.GroupVersionResource, add func(object)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if o := reconcile.ObjectOf(obj); o != nil && concerns(nil, o) {
				add(nameOf(resource, o))
			}
		},
		UpdateFunc: func(before, after any) {
			b, a := reconcile.ObjectOf(before), reconcile.ObjectOf(after)
			if b == nil || a == nil {
				return
			}
			if concerns(b, a) {
				add(nameOf(resource, a))
			}
			c.unblocked(b, a, add)
		},
		DeleteFunc: func(obj any) {
			if o := reconcile.ObjectOf(obj); o != nil {
				c.gone(o, add)
			}
		},
	}
}

// concerns reports whether a change may give the collector something to do:
// owners changed, or the object is being deleted with one of our finalizers.
func concerns(before, after metav1.Object) bool {
	if after.GetDeletionTimestamp() != nil && (waits(after) || orphans(after)) {
		return true
	}
	if len(after.GetOwnerReferences()) == 0 {
		return false
	}
	return before == nil || !sameOwners(before.GetOwnerReferences(), after.GetOwnerReferences())
}

// sameOwners compares all that identifies an owner.
func sameOwners(a, b []metav1.OwnerReference) bool {
	return slices.EqualFunc(a, b, func(a, b metav1.OwnerReference) bool {
		return a.UID == b.UID && a.Name == b.Name && a.Kind == b.Kind && a.APIVersion == b.APIVersion
	})
}

// gone passes on what the end of an object means: its dependents have lost an
// owner, and an owner that waits has one dependent less.
func (c *controller) gone(o metav1.Object, add func(object)) {
	for _, d := range c.dependents(o.GetUID()) {
		add(d.object)
	}
	for _, ref := range o.GetOwnerReferences() {
		if owner, ok := c.find(ref.UID); ok && waits(owner.meta) {
			add(owner.object)
		}
	}
}

// unblocked passes on that a dependent holds up its owner no more.
func (c *controller) unblocked(before, after metav1.Object, add func(object)) {
	for _, ref := range before.GetOwnerReferences() {
		if !blocks(before, ref.UID) || blocks(after, ref.UID) {
			continue
		}
		if owner, ok := c.find(ref.UID); ok && waits(owner.meta) {
			add(owner.object)
		}
	}
}

func nameOf(resource schema.GroupVersionResource, o metav1.Object) object {
	return object{resource, o.GetNamespace(), o.GetName()}
}

// mappingOf finds the resource of an owner's kind.
func (c *controller) mappingOf(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	c.mapping.Lock()
	defer c.mapping.Unlock()
	if m := c.known[gvk]; m != nil {
		return m, nil
	}
	if c.mapper != nil {
		if m, err := c.learn(gvk); err == nil || c.env.Clock.Since(c.mapped) < mapperLifetime {
			return m, err
		}
	}
	groups, err := restmapper.GetAPIGroupResources(c.env.Discovery)
	if err != nil && len(groups) == 0 {
		return nil, err
	}
	c.mapper, c.mapped = restmapper.NewDiscoveryRESTMapper(groups), c.env.Now()
	c.known = map[schema.GroupVersionKind]*meta.RESTMapping{}
	return c.learn(gvk)
}

// learn asks the mapper once for each kind: it is asked for every owner reference.
func (c *controller) learn(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	m, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err == nil {
		c.known[gvk] = m
	}
	return m, err
}

// forgetKinds makes the next owner reference read anew which kinds there are: one may have come back with another scope.
func (c *controller) forgetKinds() {
	c.mapping.Lock()
	defer c.mapping.Unlock()
	c.mapper, c.known = nil, nil
}
