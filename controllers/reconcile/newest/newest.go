package newest

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// Versions are the own writes of one kind. The zero value is ready to use.
type Versions[T metav1.Object] struct {
	mu  sync.Mutex
	own map[reconcile.Key]T
}

// Wrote keeps what a write has answered.
func (v *Versions[T]) Wrote(object T) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.own == nil {
		v.own = map[reconcile.Key]T{}
	}
	v.own[reconcile.KeyOf(object)] = object
}

// Forget drops what was written of an object: for those that the cache says are deleted.
func (v *Versions[T]) Forget(key reconcile.Key) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.own, key)
}

// Get is the newer one of the cached version and the own one. What the cache does not have is forgotten.
func (v *Versions[T]) Get(cache reconcile.Cache[T], key reconcile.Key) (T, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	cached, err := cache.Get(key)
	if err != nil {
		delete(v.own, key)
		return cached, err
	}
	return v.newest(cached), nil
}

// List is what read finds in the cache, each object in the newer one of its two versions. It is read under the lock:
// what was read before might be older than what the cache has shown since, and is therefore forgotten.
func (v *Versions[T]) List(read func() ([]T, error)) ([]T, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	found, err := read()
	for i, cached := range found {
		found[i] = v.newest(cached)
	}
	return found, err
}

func (v *Versions[T]) newest(cached T) T {
	key := reconcile.KeyOf(cached)
	own, ok := v.own[key]
	if !ok {
		return cached
	}
	if own.GetUID() == cached.GetUID() && newer(own, cached) {
		return own
	}
	delete(v.own, key)
	return cached
}

// newer compares versions. One that cannot be read is not newer: the cache will tell.
func newer(a, b metav1.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0
}
