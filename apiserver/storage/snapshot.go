package storage

import (
	"context"
	"iter"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// Snapshot is one table at one revision, for parts of this process that decide by
// what they read. Its objects are shared: do not change them.
type Snapshot struct {
	table *Table
	root  *state.Root
}

// Served returns the table of a kind, or nil if this API has no such kind.
func (s *Store) Served(gvr schema.GroupVersionResource) *Table { return s.tables[gvr] }

// Kind returns what the table's objects are.
func (t *Table) Kind() *resource.Any { return t.kind }

// Kinds returns the kinds that the store serves, in no order.
func (s *Store) Kinds() []*resource.Any {
	kinds := make([]*resource.Any, 0, len(s.tables))
	for _, t := range s.tables {
		kinds = append(kinds, t.kind)
	}
	return kinds
}

// Empty reports whether this replica has no object of the table.
func (t *Table) Empty() bool { return t.EmptyIn("") }

// EmptyIn is Empty for one namespace, or for all if it is empty.
func (t *Table) EmptyIn(namespace string) bool {
	for range t.store.log.Root().All(t.namespacePrefix(namespace)) {
		return false
	}
	return true
}

// Sizes returns how many objects of a resource this replica has, and their bytes as they are
// stored, in one namespace or in all. It counts no further than to one of the limits.
func (s *Store) Sizes(gr schema.GroupResource, namespace string, objectsLimit, bytesLimit int) (objects, bytes int) {
	prefix := resourcePrefix(gr)
	if namespace != "" {
		prefix += namespace + "/"
	}
	for r := range s.log.Root().All(prefix) {
		objects++
		bytes += len(r.Value)
		if objects >= objectsLimit || bytes >= bytesLimit {
			break
		}
	}
	return objects, bytes
}

// Here returns the table as this replica has it, without waiting and however old: for what counts before it has caught up.
func (t *Table) Here() Snapshot { return Snapshot{table: t, root: t.store.log.Root()} }

// Snapshot returns the table as resourceVersion asks for it: "0" what this replica
// has, "" what holds every write acknowledged before the call.
func (t *Table) Snapshot(ctx context.Context, resourceVersion string) (Snapshot, error) {
	root, err := t.store.rootAtLeast(ctx, resourceVersion)
	return Snapshot{table: t, root: root}, err
}

// Get returns an object, or nil if there is none.
func (s Snapshot) Get(namespace, name string) (resource.Object, error) {
	r, ok := s.root.Get(s.table.key(namespace, name))
	if !ok {
		return nil, nil
	}
	cached, err := s.table.decode(r)
	if err != nil {
		return nil, err
	}
	return cached.object, nil
}

// All yields the objects of a namespace, or of all if it is empty, by name. It ends
// with the first that cannot be decoded.
func (s Snapshot) All(namespace string) iter.Seq2[resource.Object, error] {
	return func(yield func(resource.Object, error) bool) {
		for r := range s.root.All(s.table.namespacePrefix(namespace)) {
			cached, err := s.table.decode(r)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(cached.object, nil) {
				return
			}
		}
	}
}
