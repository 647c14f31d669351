package rest

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/rest/table"
)

// Computed is a kind whose objects are made when they are asked for, and not stored. It is read only.
type Computed struct {
	Kind *resource.Any
	// Get returns one object, which is the caller's, or an API error.
	Get func(ctx context.Context, namespace, name string) (resource.Object, error)
	// List returns the objects of a namespace, or of all if it is empty, in the order in which they are shown.
	List func(ctx context.Context, namespace string) ([]resource.Object, error)
}

// computedStore serves a computed kind through upstream's handlers.
type computedStore struct {
	table.Convertor
	computed Computed
}

var (
	_ rest.Getter = computedStore{}
	_ rest.Lister = computedStore{}
)

func (e *Endpoints) addComputed(computed Computed) error {
	kind := computed.Kind
	store := computedStore{table.New(kind, e.config.Storage.Now), computed}
	scope, err := e.scope(kind, "", kind.GroupVersionKind, store, nil)
	if err != nil {
		return err
	}
	e.kinds[kind.GroupVersionResource()] = kind
	e.add(kind, "", map[string]http.HandlerFunc{
		"get":  handlers.GetResource(store, scope),
		"list": handlers.ListResource(store, nil, scope, false, minWatchTimeout),
	})
	return nil
}

// New implements rest.Storage.
func (s computedStore) New() runtime.Object { return s.computed.Kind.New() }

// NewList implements rest.Lister.
func (s computedStore) NewList() runtime.Object { return s.computed.Kind.NewList() }

// Destroy implements rest.Storage.
func (s computedStore) Destroy() {}

// Get implements rest.Getter.
func (s computedStore) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	return s.computed.Get(ctx, request.NamespaceValue(ctx), name)
}

// List implements rest.Lister. There are no pages: the objects of the next one would be others.
func (s computedStore) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	all, err := s.computed.List(ctx, request.NamespaceValue(ctx))
	if err != nil {
		return nil, err
	}
	list := s.computed.Kind.NewList()
	items := []runtime.Object{}
	for _, object := range all {
		if s.selected(object, options) {
			items = append(items, object)
		}
	}
	return list, meta.SetList(list, items)
}

func (s computedStore) selected(object resource.Object, options *internalversion.ListOptions) bool {
	if options == nil {
		return true
	}
	if options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(object.GetLabels())) {
		return false
	}
	set := fields.Set{"metadata.name": object.GetName()}
	if s.computed.Kind.Namespaced() {
		set["metadata.namespace"] = object.GetNamespace()
	}
	return options.FieldSelector == nil || options.FieldSelector.Matches(set)
}
