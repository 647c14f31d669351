package rest

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// finalizeStrategy is that of namespaces/finalize: only spec.finalizers change.
type finalizeStrategy struct{ strategy }

func (s finalizeStrategy) PrepareForUpdate(_ context.Context, o, oldObj runtime.Object) {
	obj, old := o.(*corev1.Namespace), oldObj.(*corev1.Namespace)
	obj.Status = old.Status
}

func (s finalizeStrategy) ValidateUpdate(_ context.Context, obj, _ runtime.Object) field.ErrorList {
	return s.kind.Validate(obj.(*corev1.Namespace))
}

// finalize returns the store of namespaces/finalize.
func (s *Store) finalize() *Store {
	c := *s
	c.rules = finalizeStrategy{s.strategy}
	return &c
}
