package reconcile

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// Cache is what a controller reads of one kind. The objects are shared with the store and
// all other readers: copy before change.
type Cache[T metav1.Object] struct {
	resource schema.GroupResource
	reader   string
	informer cache.SharedIndexInformer
	indexes  []Index
	err      error // it is not declared
}

// Get returns one object, or an error of the kind that apierrors.IsNotFound knows. The key
// of an object without a namespace has none.
func (c Cache[T]) Get(key Key) (found T, err error) {
	if c.err != nil {
		return found, c.err
	}
	obj, exists, err := c.informer.GetIndexer().GetByKey(key.String())
	if err != nil {
		return found, err
	}
	if !exists {
		return found, apierrors.NewNotFound(c.resource, key.Name)
	}
	return obj.(T), nil
}

// List returns the objects of a namespace, or of all if it is empty, that the selector
// chooses; nil chooses all. Of a kind that is declared By(ByLabel) it reads only what has one of the selector's labels.
func (c Cache[T]) List(namespace string, selector labels.Selector) (found []T, err error) {
	if c.err != nil {
		return nil, c.err
	}
	if selector == nil {
		selector = labels.Everything()
	}
	if namespace != "" && c.declares(ByLabel) {
		few, known, err := candidates(c.informer.GetIndexer(), namespace, selector)
		if err != nil || known {
			return chosen[T](few, selector), err
		}
	}
	err = cache.ListAllByNamespace(c.informer.GetIndexer(), namespace, selector, func(obj any) {
		found = append(found, obj.(T))
	})
	return found, err
}

func chosen[T metav1.Object](objects []any, selector labels.Selector) (found []T) {
	for _, o := range objects {
		if t, ok := o.(T); ok && selector.Matches(labels.Set(t.GetLabels())) {
			found = append(found, t)
		}
	}
	return found
}

func (c Cache[T]) declares(index Index) bool {
	return slices.ContainsFunc(c.indexes, func(declared Index) bool { return declared.Name == index.Name })
}

// ByIndex returns the objects that a declared index files under a value.
func (c Cache[T]) ByIndex(index Index, value string) ([]T, error) {
	if c.err != nil {
		return nil, c.err
	}
	if c.declares(index) {
		return ByIndex[T](c.informer, index.Name, value)
	}
	return nil, &UndeclaredError{c.reader, fmt.Sprintf("%s by the index %s", c.resource, index.Name)}
}

// Owned returns the objects whose controlling owner is owner. The kind is declared By(ByController).
func (c Cache[T]) Owned(owner metav1.Object) ([]T, error) {
	return c.ByIndex(ByController, string(owner.GetUID()))
}

// Orphans returns the objects of a namespace without a controlling owner. The kind is
// declared By(ByController).
func (c Cache[T]) Orphans(namespace string) ([]T, error) {
	return c.ByIndex(ByController, orphanIndexKey(namespace))
}

// Indexer is for listers of client-go that libraries want. It is empty if the kind is not
// declared: a source of the cache says so.
func (c Cache[T]) Indexer() cache.Indexer {
	if c.err != nil {
		return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	}
	return c.informer.GetIndexer()
}
