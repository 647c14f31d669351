package adopt

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Writer is what carrying out claims needs of the API: methods of typed clients.
type Writer[O, T metav1.Object] struct {
	// Kind is the owner's.
	Kind schema.GroupVersionKind
	// Owner reads the owner, past any cache.
	Owner func(ctx context.Context, name string, options metav1.GetOptions) (O, error)
	// Patch patches a dependent.
	Patch func(ctx context.Context, name string, kind types.PatchType, patch []byte, options metav1.PatchOptions,
		subresources ...string) (T, error)
	// Finalizers are put on what is adopted and taken from what is released.
	Finalizers []string
}

// CarryOut adopts and releases; the result is what is the owner's afterwards.
func CarryOut[O, T metav1.Object](ctx context.Context, owner O, claims Claims[T], w Writer[O, T]) ([]T, error) {
	mine := slices.Clone(claims.Keep)
	for _, child := range claims.Release {
		if _, _, err := w.patch(ctx, child, ReleasePatch(owner, child, w.Finalizers...)); err != nil {
			return nil, fmt.Errorf("release %s: %w", child.GetName(), err)
		}
	}
	if len(claims.Adopt) == 0 {
		return mine, nil
	}
	// The cache may not know yet that the owner is being deleted or was replaced.
	fresh, err := w.Owner(ctx, owner.GetName(), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if fresh.GetUID() != owner.GetUID() || fresh.GetDeletionTimestamp() != nil {
		return mine, nil
	}
	for _, child := range claims.Adopt {
		adopted, done, err := w.patch(ctx, child, AdoptPatch(owner, w.Kind, child, w.Finalizers...))
		if err != nil {
			return nil, fmt.Errorf("adopt %s: %w", child.GetName(), err)
		}
		if done {
			mine = append(mine, adopted)
		}
	}
	return mine, nil
}

// patch applies an owner patch. A child that is gone, or was replaced by another
// of its name (the uid in the patch makes that Invalid), is no error: nothing is
// left to claim.
func (w Writer[O, T]) patch(ctx context.Context, child T, patch []byte) (patched T, done bool, err error) {
	patched, err = w.Patch(ctx, child.GetName(), PatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return patched, false, nil
	}
	return patched, err == nil, err
}
