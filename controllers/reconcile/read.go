package reconcile

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// Read is something that a controller may declare to read: a Kind.
type Read interface {
	Declaration() Declaration
}

// Declaration is what a server has to keep for a reader.
type Declaration struct {
	// Resource is where the objects are.
	Resource schema.GroupVersionResource
	// Only is the name of the only objects that are read, in every namespace; empty: all.
	Only string
	// Indexes are what they are looked up by, beside their names.
	Indexes []Index
}

// Declaration makes a Declaration a Read, for readers that need no Kind.
func (d Declaration) Declaration() Declaration { return d }

// Prepare gives an informer of the objects the indexes. It may be called any number of
// times, on a running informer too.
func (d Declaration) Prepare(informer cache.SharedIndexInformer) error {
	var errs []error
	for _, index := range d.Indexes {
		errs = append(errs, EnsureIndex(informer, index.Name, index.Keys))
	}
	return errors.Join(errs...)
}

func (d Declaration) String() string {
	if d.Only == "" {
		return d.Resource.GroupResource().String()
	}
	return d.Resource.GroupResource().String() + " called " + d.Only
}

// Index files objects under values by which they are looked up.
type Index struct {
	// Name is the same for the same Keys, in all controllers.
	Name string
	// Keys are the values of an object.
	Keys func(o metav1.Object) []string
}

// Kind is a kind of objects that controllers read from caches, as the Go type T.
type Kind[T metav1.Object] struct{ declared Declaration }

// KindOf is the kind of a resource. The version must be the one that the Go type is of.
func KindOf[T metav1.Object](resource schema.GroupVersionResource) Kind[T] {
	return Kind[T]{Declaration{Resource: resource}}
}

// Called is the part of the kind that has this name, in every namespace.
func (k Kind[T]) Called(name string) Kind[T] {
	k.declared.Only = name
	return k
}

// By is the kind with indexes.
func (k Kind[T]) By(indexes ...Index) Kind[T] {
	k.declared.Indexes = indexes
	return k
}

// Declaration makes a Kind a Read.
func (k Kind[T]) Declaration() Declaration { return k.declared }

// From is the cache of the kind. If the controller does not declare it, the cache answers
// with an UndeclaredError whatever is asked of it, and so does Run with a source of it.
func (k Kind[T]) From(env *Env) Cache[T] {
	c := Cache[T]{resource: k.declared.Resource.GroupResource(), reader: env.name}
	for _, read := range env.reads {
		if read.Resource == k.declared.Resource && read.Only == k.declared.Only {
			c.informer, c.indexes = read.informer, read.Indexes
			return c
		}
	}
	c.err = &UndeclaredError{env.name, k.declared.String()}
	return c
}
