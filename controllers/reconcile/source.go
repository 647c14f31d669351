package reconcile

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// SourceOf turns the events of one informer into keys. Self, Owner, Changes and Filled make it
// from a Cache.
type SourceOf[K comparable] struct {
	// Informer is shared with other controllers and started elsewhere.
	Informer cache.SharedIndexInformer
	// Map names the keys that a change concerns: before is nil for an added
	// object, after is nil for a deleted one. Both are shared and read-only. A
	// nil Map only waits until the informer is filled.
	Map func(before, after metav1.Object) []K

	err error // of the cache that it was made from
}

// Self maps each object to its own key.
func Self[T metav1.Object](c Cache[T]) Source {
	return Changes(c, func(before, after metav1.Object) []Key { return []Key{KeyOf(latest(before, after))} })
}

// Changes maps the changes of a cache to keys, see SourceOf.
func Changes[K comparable, T metav1.Object](c Cache[T], keys func(before, after metav1.Object) []K) SourceOf[K] {
	return SourceOf[K]{Informer: c.informer, Map: keys, err: c.err}
}

// Filled yields no keys: Run waits until the cache is filled, for controllers that only
// look things up in it.
func Filled[T metav1.Object](c Cache[T]) Source { return Source{Informer: c.informer, err: c.err} }

// Owner maps each object to the key of its controlling owner of the given
// kind, the one before and the one after the change.
func Owner[T metav1.Object](c Cache[T], owner schema.GroupKind) Source {
	return Changes(c, func(before, after metav1.Object) []Key {
		var keys []Key
		for _, o := range []metav1.Object{before, after} {
			if key, ok := OwnerKey(o, owner); ok && (len(keys) == 0 || keys[0] != key) {
				keys = append(keys, key)
			}
		}
		return keys
	})
}

// KeyOf is the object's own key.
func KeyOf(o metav1.Object) Key {
	return Key{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// OwnerKey is the key of o's controlling owner, when that is of the given kind.
func OwnerKey(o metav1.Object, owner schema.GroupKind) (Key, bool) {
	if o == nil {
		return Key{}, false
	}
	ref := metav1.GetControllerOfNoCopy(o)
	if ref == nil || ref.Kind != owner.Kind {
		return Key{}, false
	}
	if gv, err := schema.ParseGroupVersion(ref.APIVersion); err != nil || gv.Group != owner.Group {
		return Key{}, false
	}
	return Key{Namespace: o.GetNamespace(), Name: ref.Name}, true
}

func latest(before, after metav1.Object) metav1.Object {
	if after != nil {
		return after
	}
	return before
}

// handler adapts Map to client-go's callbacks.
func (s SourceOf[K]) handler(add func(key K, before, after metav1.Object)) cache.ResourceEventHandler {
	emit := func(before, after metav1.Object) {
		if s.Map == nil || before == nil && after == nil {
			return
		}
		for _, key := range s.Map(before, after) {
			add(key, before, after)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { emit(nil, ObjectOf(obj)) },
		UpdateFunc: func(before, after any) { emit(ObjectOf(before), ObjectOf(after)) },
		DeleteFunc: func(obj any) { emit(ObjectOf(obj), nil) },
	}
}

// ObjectOf is the object that an informer hands to a handler; it also unwraps the tombstone of an object whose deletion the watch
// missed. It is a true nil when there is no object.
func ObjectOf(obj any) metav1.Object {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if o, ok := obj.(metav1.Object); ok {
		return o
	}
	return nil
}
