package caches

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/apiserver/admission/dynamic"
	"github.com/setpoint-io/setpoint/apiserver/flowcontrol"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/scheduler"
	"github.com/setpoint-io/setpoint/server/kubernetesservice"
)

// Caches are what loops and admission of this server read. They hold the store's own
// decoded objects: no request, no codec, no second copy; controllers cannot tell.
// They are warm whether it leads or not, so there are only those that somebody declares to read:
// every kind more costs each server a decoding of every object.
type Caches struct {
	// SharedInformerFactory is for readers that want one. It has the informers of whole kinds.
	informers.SharedInformerFactory
	// Kinds are what the factory holds, each with all objects of its kind.
	Kinds map[schema.GroupVersionResource]cache.SharedIndexInformer

	parts   map[part]cache.SharedIndexInformer
	running sync.WaitGroup // of parts
	store   *storage.Store
	logger  *slog.Logger
}

// part is the objects of a kind that have one name.
type part struct {
	resource schema.GroupVersionResource
	only     string
}

var _ reconcile.Caches = (*Caches)(nil)

// New makes the caches of what is read, and no others. They fill once they are started.
func New(client kubernetes.Interface, store *storage.Store, reads []reconcile.Read, logger *slog.Logger) (*Caches, error) {
	c := &Caches{
		SharedInformerFactory: informers.NewSharedInformerFactory(
			client,
			0,
		), Kinds: map[schema.GroupVersionResource]cache.SharedIndexInformer{},
		parts: map[part]cache.SharedIndexInformer{}, store: store, logger: logger,
	}
	tables := Tables(store)
	for _, read := range reads {
		d := read.Declaration()
		table := tables[d.Resource]
		if table == nil {
			return nil, fmt.Errorf("nobody can read %s: it is not stored under this version", d)
		}
		if err := d.Prepare(c.add(d, table)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// add makes the informer of a declaration, unless it is there.
func (c *Caches) add(d reconcile.Declaration, table *storage.Table) cache.SharedIndexInformer {
	if known := c.Informer(d.Resource, d.Only); known != nil {
		return known
	}
	lister, kind := &Lister{table: table, name: d.Only}, table.Kind()
	informer := cache.NewSharedIndexInformer(lister, kind.New(), 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	_ = informer.SetWatchErrorHandlerWithContext(c.tellUnread(d)) // it has not started
	if d.Only != "" {
		c.parts[part{d.Resource, d.Only}] = informer
		return informer
	}
	c.Kinds[d.Resource] = c.InformerFor(kind.New(), func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return informer })
	return informer
}

// tellUnread returns what says why a cache does not fill, such as for an object that cannot be decoded: whoever reads
// the cache waits, because what it lacks may be what a loop would have kept.
func (c *Caches) tellUnread(d reconcile.Declaration) cache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, _ *cache.Reflector, err error) {
		if ctx.Err() == nil && !apierrors.IsResourceExpired(err) && !apierrors.IsServiceUnavailable(err) {
			c.logger.Error("control loops wait for a kind that cannot be read", "kind", d.String(), "err", err)
		}
	}
}

// Informer implements reconcile.Caches.
func (c *Caches) Informer(resource schema.GroupVersionResource, only string) cache.SharedIndexInformer {
	if only != "" {
		if informer, known := c.parts[part{resource, only}]; known {
			return informer
		}
		return nil
	}
	if informer, known := c.Kinds[resource]; known {
		return informer
	}
	return nil
}

// StartWithContext starts all informers, until ctx ends.
func (c *Caches) StartWithContext(ctx context.Context) {
	c.SharedInformerFactory.StartWithContext(ctx)
	for _, informer := range c.parts {
		c.running.Go(func() { informer.RunWithContext(ctx) })
	}
}

// Synced returns an error until every informer has what was stored when it started.
func (c *Caches) Synced(context.Context) error {
	for what, informer := range c.all() {
		if !informer.HasSynced() {
			return fmt.Errorf("the cache of %s is not filled yet", what)
		}
	}
	return nil
}

// Shutdown waits until all informers have ended.
func (c *Caches) Shutdown() {
	c.SharedInformerFactory.Shutdown()
	c.running.Wait()
}

// all returns every informer by what it is called in the log.
func (c *Caches) all() map[string]cache.SharedIndexInformer {
	all := map[string]cache.SharedIndexInformer{}
	for of, informer := range c.parts {
		all[of.only] = informer
	}
	for gvr, informer := range c.Kinds {
		all[gvr.GroupResource().String()] = informer
	}
	return all
}

// Tables are the objects of all built-in kinds, each once.
func Tables(store *storage.Store) map[schema.GroupVersionResource]*storage.Table {
	all := map[schema.GroupVersionResource]*storage.Table{}
	for _, kind := range store.Kinds() {
		if kind.StoredAs == (schema.GroupResource{}) { // else another version of the same objects
			all[kind.GroupVersionResource()] = store.Table(kind.GroupVersionResource())
		}
	}
	return all
}

// Reads are what the loops, the scheduler and admission of a server read. serves reports
// whether a kind is served.
func Reads(serves func(schema.GroupVersionResource) bool) []reconcile.Read {
	reads := slices.Concat(controllers.Reads(), scheduler.Reads(serves), kubernetesservice.Reads())
	for _, resource := range slices.Concat(dynamic.Reads(), flowcontrol.Reads()) {
		reads = append(reads, reconcile.Declaration{Resource: resource})
	}
	return reads
}

// A Lister feeds an informer from a table. It reads what this replica has:
// caches stay warm on a replica that does not lead, or that lost the others.
type Lister struct {
	table *storage.Table
	name  string // of the only objects to list; empty: all
}

// NewLister lists all objects of a table.
func NewLister(table *storage.Table) *Lister { return &Lister{table: table} }

var _ cache.ListerWatcherWithContext = (*Lister)(nil)

// IsWatchListSemanticsUnSupported makes informers begin with a list: it is there at
// once, where a watch would hand over one object after the other.
func (*Lister) IsWatchListSemanticsUnSupported() bool { return true }

func (l *Lister) selection() storage.Selection {
	if l.name == "" {
		return storage.Selection{}
	}
	return storage.Selection{Fields: fields.OneTermEqualSelector(metav1.ObjectNameField, l.name)}
}

// listRetry is the pause before a list is tried again while there is no leader. An informer would pause for half a minute in the end, and
// this server is not ready before its caches are filled.
const listRetry = 200 * time.Millisecond

// ListWithContext implements cache.ListerWithContext. It waits for a leader.
func (l *Lister) ListWithContext(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	page, err := l.page(ctx)
	for apierrors.IsServiceUnavailable(err) && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(listRetry):
			page, err = l.page(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	list := &internalversion.List{
		ListMeta: metav1.ListMeta{ResourceVersion: page.ResourceVersion},
		Items:    make([]runtime.Object, len(page.Items)),
	}
	for i, item := range page.Items {
		list.Items[i] = item.Object()
	}
	return list, nil
}

func (l *Lister) page(ctx context.Context) (*storage.Page, error) {
	return l.table.List(ctx, storage.ListOptions{Selection: l.selection(), ResourceVersion: "0"})
}

// WatchWithContext implements cache.WatcherWithContext.
func (l *Lister) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if o.ResourceVersion == "" {
		o.ResourceVersion = "0"
	}
	return l.table.Watch(ctx, storage.WatchOptions{
		Selection: l.selection(), ResourceVersion: o.ResourceVersion, SendInitialEvents: o.SendInitialEvents,
		Bookmarks: o.AllowWatchBookmarks, Nudged: true, Plain: true,
	})
}

// List implements cache.Lister.
func (l *Lister) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), o)
}

// Watch implements cache.Watcher.
func (l *Lister) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), o)
}
