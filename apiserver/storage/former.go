package storage

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/raftstore/state"
)

type formerKey struct{}

// WithFormer has reads of the past answer for former namespaces of a name as well, if may says so. Without it they answer for the present
// one only: whoever makes a namespace of a deleted one's name does not get what was in that.
func WithFormer(ctx context.Context, may func(context.Context) bool) context.Context {
	return context.WithValue(ctx, formerKey{}, may)
}

// NamespaceBegan is the revision that made the present namespace of an object of this kind; 0: it has none, or it is not there.
func (t *Table) NamespaceBegan(namespace string) uint64 {
	if t.kind.ClusterScoped || namespace == "" {
		return 0
	}
	found, ok := t.store.log.Root().Get(resourcePrefix(schema.GroupResource{Resource: "namespaces"}) + namespace)
	if !ok {
		return 0
	}
	return found.CreateRevision
}

// ofThisNamespace refuses revisions of former namespaces.
func (t *Table) ofThisNamespace(ctx context.Context, namespace string, revision uint64) error {
	began := t.NamespaceBegan(namespace)
	if began <= revision {
		return nil
	}
	if may, _ := ctx.Value(formerKey{}).(func(context.Context) bool); may != nil && may(ctx) {
		return nil
	}
	return expired(fmt.Sprintf("The namespace %q is there since resourceVersion %d: what was before is for those who may read %s in all namespaces.",
		namespace, began, t.kind.GroupResource()))
}

// rootOf is a root with what was under a prefix, of a namespace or of all, at a revision. It gets every write acknowledged before: one of
// them may have purged what is asked for, or made the namespace another tenant's, and a replica that is behind or cut off does not know.
func (t *Table) rootOf(ctx context.Context, namespace, prefix string, revision uint64) (*state.Root, error) {
	if _, err := t.store.log.ReadIndex(ctx); err != nil {
		return nil, unavailable(err)
	}
	now, err := t.store.waitRevision(ctx, revision)
	if err != nil {
		return nil, err
	}
	if err := t.ofThisNamespace(ctx, namespace, revision); err != nil {
		return nil, err
	}
	if now.Revision == revision {
		return now, nil
	}
	return t.store.rootExactly(ctx, prefix, revision)
}
