package setpoint

import (
	"context"
	"errors"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	"github.com/setpoint-io/setpoint/apiserver/fairness"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/apiservice"
	crdcontroller "github.com/setpoint-io/setpoint/controllers/crd"
	"github.com/setpoint-io/setpoint/controllers/kubernetesservice"
	"github.com/setpoint-io/setpoint/controllers/rootca"
	"github.com/setpoint-io/setpoint/controllers/scheduler"
)

// caches are what loops and admission of this server read. They hold the store's own
// decoded objects: no request, no codec, no second copy; controllers cannot tell.
// They are warm whether it leads or not, so there are only those that somebody reads:
// every kind more costs each server a decoding of every object.
type caches struct {
	informers.SharedInformerFactory
	// kinds are what the factory holds, each with all objects of its kind.
	kinds map[schema.GroupVersionResource]cache.SharedIndexInformer
	// bundles holds the ConfigMaps called rootca.Name.
	bundles cache.SharedIndexInformer
}

// rootCA keeps the informer of the bundles apart from that of all ConfigMaps.
type rootCA struct{ corev1.ConfigMap }

// newCaches makes the caches of everything that warm asks a factory for.
func newCaches(client kubernetes.Interface, store *storage.Store, warm func(informers.SharedInformerFactory) error) (*caches, error) {
	wanted, err := typesAsked(client, warm)
	if err != nil {
		return nil, err
	}
	c := &caches{informers.NewSharedInformerFactory(client, 0), map[schema.GroupVersionResource]cache.SharedIndexInformer{}, nil}
	for gvr, table := range tables(store) {
		if kind := table.Kind(); wanted[reflect.TypeOf(kind.New())] || gvr == crdcontroller.Resource || gvr == apiservice.Resource {
			c.kinds[gvr] = c.add(kind.New(), &tableLister{table: table})
		}
	}
	c.bundles = c.add(&rootCA{}, &tableLister{table: store.Table(corev1.SchemeGroupVersion.WithResource("configmaps")), name: rootca.Name})
	return c, warm(c)
}

// add puts an informer into the factory, under the type of key.
func (c *caches) add(key runtime.Object, lister *tableLister) cache.SharedIndexInformer {
	return c.InformerFor(key, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(lister, lister.table.Kind().New(), 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	})
}

// all returns every informer by what it is called in the log.
func (c *caches) all() map[string]cache.SharedIndexInformer {
	all := map[string]cache.SharedIndexInformer{rootca.Name: c.bundles}
	for gvr, informer := range c.kinds {
		all[gvr.GroupResource().String()] = informer
	}
	return all
}

// tables are the objects of all built-in kinds, each once.
func tables(store *storage.Store) map[schema.GroupVersionResource]*storage.Table {
	all := map[schema.GroupVersionResource]*storage.Table{}
	for _, kind := range store.Kinds() {
		if kind.StoredAs == (schema.GroupResource{}) { // else another version of the same objects
			all[kind.GroupVersionResource()] = store.Table(kind.GroupVersionResource())
		}
	}
	return all
}

// warm asks for what this server's loops and admission read.
func (s *Server) warm(f informers.SharedInformerFactory) error {
	scheduler.Prepare(scheduler.Config{Informers: f, Serves: s.storage.Serves})
	dynamic.Warm(f)
	fairness.Warm(f)
	return errors.Join(controllers.Warm(f), kubernetesservice.Warm(f))
}

// typesAsked finds the types of objects that warm asks a factory for. A factory tells
// only of informers that it has started: these are, and end before they begin.
func typesAsked(client kubernetes.Interface, warm func(informers.SharedInformerFactory) error) (map[reflect.Type]bool, error) {
	probe := informers.NewSharedInformerFactory(client, 0)
	if err := warm(probe); err != nil {
		return nil, err
	}
	ended, end := context.WithCancel(context.Background())
	end()
	probe.StartWithContext(ended)
	defer probe.Shutdown()
	asked := map[reflect.Type]bool{}
	for t := range probe.WaitForCacheSyncWithContext(ended).Synced {
		asked[t] = true
	}
	return asked, nil
}

// tableLister feeds an informer from a table. It reads what this replica has:
// caches stay warm on a replica that does not lead, or that lost the others.
type tableLister struct {
	table *storage.Table
	name  string // of the only objects to list; empty: all
}

var _ cache.ListerWatcherWithContext = (*tableLister)(nil)

// IsWatchListSemanticsUnSupported makes informers begin with a list: it is there at
// once, where a watch would hand over one object after the other.
func (*tableLister) IsWatchListSemanticsUnSupported() bool { return true }

func (l *tableLister) selection() storage.Selection {
	if l.name == "" {
		return storage.Selection{}
	}
	return storage.Selection{Fields: fields.OneTermEqualSelector(metav1.ObjectNameField, l.name)}
}

// ListWithContext implements cache.ListerWithContext.
func (l *tableLister) ListWithContext(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	page, err := l.table.List(ctx, storage.ListOptions{Selection: l.selection(), ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	list := &internalversion.List{ListMeta: metav1.ListMeta{ResourceVersion: page.ResourceVersion}, Items: make([]runtime.Object, len(page.Items))}
	for i, item := range page.Items {
		list.Items[i] = item.Object()
	}
	return list, nil
}

// WatchWithContext implements cache.WatcherWithContext.
func (l *tableLister) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if o.ResourceVersion == "" {
		o.ResourceVersion = "0"
	}
	return l.table.Watch(ctx, storage.WatchOptions{
		Selection: l.selection(), ResourceVersion: o.ResourceVersion, SendInitialEvents: o.SendInitialEvents,
		Bookmarks: o.AllowWatchBookmarks, Nudged: true, Plain: true,
	})
}

// List implements cache.Lister.
func (l *tableLister) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), o)
}

// Watch implements cache.Watcher.
func (l *tableLister) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), o)
}
