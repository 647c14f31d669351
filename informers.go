package setpoint

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// newInformers returns a factory whose informers read the store's own decoded
// objects: no request, no codec, no second copy. Controllers cannot tell.
func newInformers(client kubernetes.Interface, store *storage.Store, kinds []*resource.Any) (informers.SharedInformerFactory, map[schema.GroupVersionResource]cache.SharedIndexInformer) {
	factory := informers.NewSharedInformerFactory(client, 0)
	all := map[schema.GroupVersionResource]cache.SharedIndexInformer{}
	for _, kind := range kinds {
		if kind.StoredAs != (schema.GroupResource{}) {
			continue // another version of the same objects
		}
		lw := &tableLister{table: store.Table(kind.GroupVersionResource())}
		all[kind.GroupVersionResource()] = factory.InformerFor(kind.New(), func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
			return cache.NewSharedIndexInformerWithOptions(lw, kind.New(), cache.SharedIndexInformerOptions{
				Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
			})
		})
	}
	return factory, all
}

// tableLister feeds an informer from a table. It reads what this replica has:
// caches stay warm on a replica that does not lead, or that lost the others.
type tableLister struct {
	table *storage.Table
}

var _ cache.ListerWatcherWithContext = (*tableLister)(nil)

// ListWithContext implements cache.ListerWithContext.
func (l *tableLister) ListWithContext(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	page, err := l.table.List(ctx, storage.ListOptions{ResourceVersion: "0"})
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
	w, err := l.table.Watch(ctx, storage.WatchOptions{
		Selection:       storage.Selection{Labels: labels.Everything(), Fields: fields.Everything()},
		ResourceVersion: o.ResourceVersion, SendInitialEvents: o.SendInitialEvents,
		Bookmarks: o.AllowWatchBookmarks, Nudged: true,
	})
	if err != nil {
		return nil, err
	}
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		e.Object = storage.Uncache(e.Object)
		return e, true
	}), nil
}

// List implements cache.Lister.
func (l *tableLister) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), o)
}

// Watch implements cache.Watcher.
func (l *tableLister) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), o)
}
