package rest

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/managedfields"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// partStrategy is the strategy of a subresource that changes a part of an object by
// rules of its own.
type partStrategy struct {
	strategy
	part *resource.Part[resource.Object]
}

func (s partStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	s.part.Prepare(obj.(resource.Object), old.(resource.Object), s.now())
}

func (s partStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return s.part.Validate(obj.(resource.Object), old.(resource.Object), s.now())
}

// WarningsOnUpdate: nor is who writes a part.
func (s partStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

func (s partStrategy) AllowCreateOnUpdate(context.Context) bool { return false }

// addParts adds the parts of a kind, and its ordinary status unless a part is that.
func (e *Endpoints) addParts(kind *resource.Any, store *Store) error {
	for i := range kind.Parts {
		part := &kind.Parts[i]
		c := *store
		c.rules, c.allocate = partStrategy{store.strategy, part}, nil
		if err := e.addPatchable(kind, part.Name, kind.GroupVersionKind, &c, managedfields.Resets(part.Resets)); err != nil {
			return err
		}
	}
	isStatus := func(part resource.Part[resource.Object]) bool { return part.Name == "status" }
	if !kind.HasStatus() || slices.ContainsFunc(kind.Parts, isStatus) {
		return nil
	}
	reset := kind.StatusResets
	if reset == nil {
		reset = []string{"spec"}
	}
	return e.addPatchable(kind, "status", kind.GroupVersionKind, store.status(), managedfields.Resets(reset))
}
