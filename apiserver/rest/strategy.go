package rest

import (
	"context"
	"reflect"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// strategy shows a kind in the form that upstream's create, update and delete
// rules ask for.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	kind *resource.Any
}

var (
	_ rest.RESTCreateStrategy              = strategy{}
	_ rest.RESTUpdateStrategy              = strategy{}
	_ rest.GarbageCollectionDeleteStrategy = strategy{}
	_ rest.RESTGracefulDeleteStrategy      = gracefulStrategy{}
)

func newStrategy(kind *resource.Any, typer runtime.ObjectTyper) strategy {
	return strategy{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator, kind: kind}
}

func (s strategy) NamespaceScoped() bool                    { return s.kind.Namespaced() }
func (s strategy) AllowCreateOnUpdate(context.Context) bool { return s.kind.AllowCreateOnUpdate }
func (s strategy) AllowUnconditionalUpdate(context.Context) bool {
	return !s.kind.RequireResourceVersion
}
func (s strategy) Canonicalize(runtime.Object) {}

// PrepareForCreate clears what only the server may set.
func (s strategy) PrepareForCreate(ctx context.Context, o runtime.Object) {
	obj := o.(resource.Object)
	if s.kind.Status != nil && !s.kind.StatusOnCreate {
		reflect.ValueOf(s.kind.Status(obj)).Elem().SetZero()
	}
	if s.kind.Generation {
		obj.SetGeneration(1)
	}
	if s.kind.PrepareCreate != nil {
		s.kind.PrepareCreate(obj)
	}
	if s.kind.Requested == nil {
		return
	}
	by, known := request.UserFrom(ctx)
	if !known {
		by = &user.DefaultInfo{} // nobody is named rather than whom the client names
	}
	s.kind.Requested(obj, by)
}

// PrepareForUpdate carries the status over and counts changes of the spec.
func (s strategy) PrepareForUpdate(_ context.Context, o, oldObj runtime.Object) {
	obj, old := o.(resource.Object), oldObj.(resource.Object)
	if s.kind.Status != nil {
		carry(s.kind.Status, obj, old)
	}
	if s.kind.PrepareUpdate != nil {
		s.kind.PrepareUpdate(obj, old)
	}
	if s.kind.Generation && specChanged(s.kind, obj, old) {
		obj.SetGeneration(old.GetGeneration() + 1)
	}
}

func specChanged(kind *resource.Any, obj, old resource.Object) bool {
	return kind.Spec != nil && !apiequality.Semantic.DeepEqual(kind.Spec(obj), kind.Spec(old))
}

// carry overwrites a part of obj with that of old. old is a copy of its own, so
// sharing what hangs below the part is safe.
func carry(part func(resource.Object) any, obj, old resource.Object) {
	reflect.ValueOf(part(obj)).Elem().Set(reflect.ValueOf(part(old)).Elem())
}

// Validate checks metadata by the kind's name rule, then the kind's own rules.
func (s strategy) Validate(_ context.Context, o runtime.Object) field.ErrorList {
	obj := o.(resource.Object)
	errs := validation.ValidateObjectMetaAccessor(obj, s.kind.Namespaced(), s.nameRule(), field.NewPath("metadata"))
	errs = append(errs, s.kind.ValidateFinalizers(obj, nil)...)
	if s.kind.Validate != nil {
		errs = append(errs, s.kind.Validate(obj)...)
	}
	return errs
}

func (s strategy) nameRule() validation.ValidateNameFunc {
	if s.kind.ValidateName != nil {
		return s.kind.ValidateName
	}
	return validation.NameIsDNSSubdomain
}

// ValidateUpdate is the kind's rule; common metadata rules are upstream's.
func (s strategy) ValidateUpdate(_ context.Context, o, oldObj runtime.Object) field.ErrorList {
	obj, old := o.(resource.Object), oldObj.(resource.Object)
	errs := s.kind.ValidateFinalizers(obj, old)
	if s.kind.ValidateUpdate == nil {
		return errs
	}
	return append(errs, s.kind.ValidateUpdate(obj, old)...)
}

func (s strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	if s.kind.Warnings == nil {
		return nil
	}
	return s.kind.Warnings(obj.(resource.Object))
}

func (s strategy) WarningsOnUpdate(ctx context.Context, obj, _ runtime.Object) []string {
	return s.WarningsOnCreate(ctx, obj)
}

// DefaultGarbageCollectionPolicy is what happens to dependents when the client asks for nothing.
func (s strategy) DefaultGarbageCollectionPolicy(context.Context) rest.GarbageCollectionPolicy {
	if s.kind.OrphanByDefault {
		return rest.OrphanDependents
	}
	return rest.DeleteDependents
}

// deleteStrategy adds graceful deletion only where the kind has it, since
// upstream's rule looks for the method.
func (s strategy) deleteStrategy() rest.RESTDeleteStrategy {
	if s.kind.GracefulDelete == nil {
		return s
	}
	return gracefulStrategy{s}
}

type gracefulStrategy struct{ strategy }

func (s gracefulStrategy) CheckGracefulDelete(_ context.Context, obj runtime.Object, options *metav1.DeleteOptions) bool {
	return s.kind.GracefulDelete(obj.(resource.Object), options)
}

// statusStrategy is the strategy of the status subresource: only the status and
// metadata change, unless the kind keeps the latter (PrepareStatus).
type statusStrategy struct{ strategy }

func (s statusStrategy) PrepareForUpdate(_ context.Context, o, oldObj runtime.Object) {
	obj, old := o.(resource.Object), oldObj.(resource.Object)
	if s.kind.Spec != nil {
		carry(s.kind.Spec, obj, old)
	}
	if s.kind.PrepareStatus != nil {
		s.kind.PrepareStatus(obj, old)
	}
}

func (s statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	errs := s.kind.ValidateFinalizers(obj.(resource.Object), old.(resource.Object))
	if s.kind.ValidateStatus != nil {
		errs = append(errs, s.kind.ValidateStatus(obj.(resource.Object), old.(resource.Object))...)
	}
	return errs
}

func (s statusStrategy) AllowCreateOnUpdate(context.Context) bool { return false }
