package rest

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/setpoint-io/setpoint/apiserver/flowcontrol"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/rest/table"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/cpushare"
)

// Store serves one kind to upstream's handlers.
type Store struct {
	kind     *resource.Any
	table    *storage.Table
	strategy strategy
	// rules is the strategy of Update: the kind's own, or that of a subresource.
	rules rest.RESTUpdateStrategy
	// allocate claims what a write of this kind needs exclusively; nil for most.
	allocate allocator
	// quota charges what is written; nil: nothing limits it.
	quota Quota
	// ofStatus: only the status is written.
	ofStatus bool
	// guard may refuse to create or to change an object; nil for most.
	guard guard
	rest.TableConvertor
}

// guard judges a write within its transaction; creating tells creation from change.
type guard func(v *storage.View, creating bool) error

// allocator fills in and claims exclusive values, such as addresses. current is
// nil on create; obj is nil on delete.
type allocator func(v *storage.View, obj, current resource.Object) (claims, releases []string, err error)

var (
	_ rest.StandardStorage = (*Store)(nil)
	_ rest.Patcher         = (*Store)(nil)
)

func newStore(kind *resource.Any, objects *storage.Table, typer runtime.ObjectTyper) *Store {
	s := newStrategy(kind, typer, objects.Now)
	return &Store{kind: kind, table: objects, strategy: s, rules: s, TableConvertor: table.New(kind, objects.Now)}
}

// status returns the store of the status subresource.
func (s *Store) status() *Store {
	c := *s
	c.rules = statusStrategy{s.strategy}
	c.ofStatus = true
	c.allocate = nil
	return &c
}

// New implements rest.Storage.
func (s *Store) New() runtime.Object { return s.kind.New() }

// NewList implements rest.Lister.
func (s *Store) NewList() runtime.Object { return s.kind.NewList() }

// Destroy implements rest.Storage; a store holds nothing.
func (s *Store) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (s *Store) NamespaceScoped() bool { return s.kind.Namespaced() }

func (s *Store) namespace(ctx context.Context) string {
	if s.kind.ClusterScoped {
		return ""
	}
	return request.NamespaceValue(ctx)
}

// Get implements rest.Getter.
func (s *Store) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	found, read := ctx.Value(answerKey{}).(answer)
	if !read {
		found.cached, found.err = s.table.Get(ctx, s.namespace(ctx), name, options.ResourceVersion)
	}
	if found.err != nil {
		return nil, found.err
	}
	return found.cached, nil
}

// List implements rest.Lister. Where the client takes the list as it is, it is
// written from cached bytes.
func (s *Store) List(ctx context.Context, o *internalversion.ListOptions) (runtime.Object, error) {
	page, err := s.page(ctx, o)
	if err != nil {
		return nil, err
	}
	if !table.TakesWholeObjects(ctx) {
		return s.list(page, page.Items)
	}
	header, err := s.list(page, nil)
	if err != nil {
		return nil, err
	}
	return &storage.List{Header: header, Items: page.Items, Full: func() runtime.Object {
		full, _ := s.list(page, page.Items) // it worked without items
		return full
	}}, nil
}

func (s *Store) page(ctx context.Context, o *internalversion.ListOptions) (*storage.Page, error) {
	return s.table.List(ctx, storage.ListOptions{
		Selection:       s.selection(ctx, o),
		ResourceVersion: o.ResourceVersion, Match: o.ResourceVersionMatch,
		Limit: o.Limit, Continue: o.Continue,
	})
}

func (s *Store) selection(ctx context.Context, o *internalversion.ListOptions) storage.Selection {
	return storage.Selection{Namespace: s.namespace(ctx), Labels: o.LabelSelector, Fields: o.FieldSelector}
}

// list fills a typed list with shallow copies of the shared objects.
func (s *Store) list(page *storage.Page, objects []*storage.Cached) (runtime.Object, error) {
	list := s.kind.NewList()
	items, err := meta.GetItemsPtr(list)
	if err != nil {
		return nil, err
	}
	slice := reflect.ValueOf(items).Elem()
	filled := reflect.MakeSlice(slice.Type(), len(objects), len(objects))
	for i, item := range objects {
		filled.Index(i).Set(reflect.ValueOf(item.Object()).Elem())
	}
	slice.Set(filled)
	m, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	m.SetResourceVersion(page.ResourceVersion)
	m.SetContinue(page.Continue)
	m.SetRemainingItemCount(page.Remaining)
	return list, nil
}

// Watch implements rest.Watcher. One whose time is over before it begins is empty. The
// first event of a Table has the headers, which upstream's encoder notes as it encodes:
// cached bytes would be sent behind its back.
func (s *Store) Watch(ctx context.Context, o *internalversion.ListOptions) (watch.Interface, error) {
	defer flowcontrol.WatchBegun(ctx)
	defer cpushare.Computed(ctx)
	if ctx.Err() != nil {
		return watch.NewEmptyWatch(), nil
	}
	return s.table.Watch(ctx, storage.WatchOptions{
		Selection:       s.selection(ctx, o),
		ResourceVersion: o.ResourceVersion, SendInitialEvents: o.SendInitialEvents, Bookmarks: o.AllowWatchBookmarks,
		FirstApart: !table.TakesWholeObjects(ctx), Led: true,
	})
}

// write runs decide in a transaction, or only shows its result if dryRun asks so.
func (s *Store) write(ctx context.Context, name string, dryRun []string, decide storage.Decide) (resource.Object, error) {
	if len(dryRun) > 0 {
		return s.table.Preview(ctx, s.namespace(ctx), name, decide)
	}
	return s.table.Write(withActor(ctx), s.namespace(ctx), name, decide)
}

// asObject asserts what every decoded body is, and takes off the type that
// decoding left: stored objects carry none, and are compared with it.
func asObject(obj runtime.Object) (resource.Object, error) {
	o, ok := obj.(resource.Object)
	if !ok {
		return nil, fmt.Errorf("rest: %T is not an object of the API", obj)
	}
	if _, dynamic := o.(runtime.Unstructured); !dynamic { // theirs is part of them
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return o, nil
}
