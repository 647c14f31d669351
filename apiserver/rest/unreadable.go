package rest

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

var _ rest.CorruptObjectDeleterProvider = (*Store)(nil)

// GetCorruptObjDeleter implements rest.CorruptObjectDeleterProvider: what deletes, for
// ignoreStoreReadErrorWithClusterBreakingPotential, an object that cannot be decrypted.
func (s *Store) GetCorruptObjDeleter() rest.GracefulDeleter { return unreadableDeleter{s} }

type unreadableDeleter struct{ store *Store }

// Delete implements rest.GracefulDeleter. There is no object that anything could be asked
// about, or that could be shown.
func (d unreadableDeleter) Delete(ctx context.Context, name string, _ rest.ValidateObjectFunc,
	options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	err := d.store.table.DeleteUnreadable(withActor(ctx), d.store.namespace(ctx), name, len(options.DryRun) > 0)
	return nil, err == nil, err
}
