package reconcile

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// ByController files each object under the uid of its controlling owner, and one without
// such an owner under its namespace as an orphan. Owned and Orphans of a Cache read it.
var ByController = Index{Name: "setpoint/controller", Keys: func(o metav1.Object) []string {
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
		return []string{string(ref.UID)}
	}
	return []string{orphanIndexKey(o.GetNamespace())}
}}

// EnsureIndex adds a named index unless the informer has it already. Several
// controllers may ask for the same one at the same time.
func EnsureIndex(informer cache.SharedIndexInformer, name string, keys func(metav1.Object) []string) error {
	if hasIndex(informer, name) {
		return nil
	}
	err := informer.AddIndexers(cache.Indexers{name: func(obj any) ([]string, error) {
		if o, ok := obj.(metav1.Object); ok {
			return keys(o), nil
		}
		return nil, nil
	}})
	if err != nil && !hasIndex(informer, name) { // else somebody was faster
		return fmt.Errorf("index %s: %w", name, err)
	}
	return nil
}

// hasIndex asks under the informer's lock, which its map of indexers is not.
func hasIndex(informer cache.SharedIndexInformer, name string) bool {
	_, err := informer.GetIndexer().IndexKeys(name, "")
	return err == nil
}

// ByIndex lists what an index holds under one value.
func ByIndex[T metav1.Object](informer cache.SharedIndexInformer, index, value string) ([]T, error) {
	found, err := informer.GetIndexer().ByIndex(index, value)
	if err != nil {
		return nil, fmt.Errorf("read index %s: %w", index, err)
	}
	out := make([]T, 0, len(found))
	for _, o := range found {
		if t, ok := o.(T); ok {
			out = append(out, t)
		}
	}
	return out, nil
}

func orphanIndexKey(namespace string) string { return "orphan/" + namespace }
