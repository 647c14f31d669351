package reconciletest

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Edit changes an object of the world as somebody else would: the write is neither intercepted nor counted. It does
// nothing if there is no such object any more.
func Edit[T runtime.Object](w *World, obj T, change func(T)) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	resource, found := w.find(obj)
	if found == nil {
		return
	}
	next := found.DeepCopyObject().(T)
	change(next)
	if err := w.replace(resource, "", found, next); err != nil {
		w.t.Error(err)
	}
}

// Delete deletes an object of the world as somebody else would: the write is neither intercepted nor counted. It does
// nothing if there is no such object any more.
func (w *World) Delete(obj runtime.Object) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	resource, found := w.find(obj)
	if found == nil {
		return
	}
	if err := w.end(resource, found, metav1.DeleteOptions{}, func(err error) error { return err }); err != nil {
		w.t.Error(err)
	}
}

// Objects are all objects of the world, by resource.
func (w *World) Objects() map[schema.GroupVersionResource][]runtime.Object {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[schema.GroupVersionResource][]runtime.Object{}
	for resource, kind := range w.kinds {
		list, err := w.Client.Tracker().List(resource, kind, metav1.NamespaceAll)
		if err != nil {
			w.t.Error(err)
			continue
		}
		_ = meta.EachListItem(list, func(o runtime.Object) error {
			all[resource] = append(all[resource], o)
			return nil
		})
	}
	return all
}

// find is the object as it is now, or nil; the caller holds mu.
func (w *World) find(obj runtime.Object) (schema.GroupVersionResource, runtime.Object) {
	m, resource := must(meta.Accessor(obj)), w.resourceOf(obj)
	found, err := w.Client.Tracker().Get(resource, m.GetNamespace(), m.GetName())
	if err != nil {
		return resource, nil
	}
	return resource, found
}

// resourceOf tells where objects like obj are, and remembers it; the caller holds mu.
func (w *World) resourceOf(obj runtime.Object) schema.GroupVersionResource {
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		panic(err)
	}
	resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
	w.kinds[resource] = kinds[0]
	return resource
}
