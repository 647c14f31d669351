package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// objects reads the objects of one kind as this replica has them. What it returns
// is shared with all readers.
type objects[T resource.Object] struct{ table *storage.Table }

// objectsOf returns a reader; of a kind that is not served there are no objects.
func objectsOf[T resource.Object](store *storage.Store, gvr schema.GroupVersionResource) objects[T] {
	if store == nil {
		return objects[T]{}
	}
	return objects[T]{store.Served(gvr)}
}

// get returns an object. What is not here may have been made a moment ago by
// another replica, so the whole cluster is asked before it is said to be missing.
func (o objects[T]) get(ctx context.Context, namespace, name string) (found T, ok bool, err error) {
	if o.table == nil {
		return found, false, nil
	}
	if found, ok, err = o.at(ctx, "0", namespace, name); ok || err != nil {
		return found, ok, err
	}
	return o.newest(ctx, namespace, name)
}

// newest returns an object as every write before the call left it.
func (o objects[T]) newest(ctx context.Context, namespace, name string) (found T, ok bool, err error) {
	if o.table == nil {
		return found, false, nil
	}
	return o.at(ctx, "", namespace, name)
}

func (o objects[T]) at(ctx context.Context, resourceVersion, namespace, name string) (found T, ok bool, err error) {
	snapshot, err := o.table.Snapshot(ctx, resourceVersion)
	if err != nil {
		return found, false, err
	}
	obj, err := snapshot.Get(namespace, name)
	if obj == nil || err != nil {
		return found, false, err
	}
	found, ok = obj.(T)
	return found, ok, nil
}

// in returns the objects of a namespace, or of all if it is empty, by name.
func (o objects[T]) in(ctx context.Context, namespace string) ([]T, error) {
	return o.list(ctx, "0", namespace)
}

// all returns the objects of every namespace as every write before the call left them.
func (o objects[T]) all(ctx context.Context) ([]T, error) { return o.list(ctx, "", "") }

func (o objects[T]) list(ctx context.Context, resourceVersion, namespace string) ([]T, error) {
	if o.table == nil {
		return nil, nil
	}
	snapshot, err := o.table.Snapshot(ctx, resourceVersion)
	if err != nil {
		return nil, err
	}
	var all []T
	for obj, err := range snapshot.All(namespace) {
		if err != nil {
			return nil, err
		}
		all = append(all, obj.(T))
	}
	return all, nil
}
