package rest

import (
	"context"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/internal/unattended"
)

// strategy shows a kind in the form that upstream's create, update and delete
// rules ask for.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	kind *resource.Any
	// now is the cluster's time.
	now func() time.Time
}

var (
	_ rest.RESTCreateStrategy              = strategy{}
	_ rest.RESTUpdateStrategy              = strategy{}
	_ rest.DeclarativeValidationStrategy   = strategy{}
	_ rest.GarbageCollectionDeleteStrategy = strategy{}
	_ rest.RESTGracefulDeleteStrategy      = gracefulStrategy{}
)

func newStrategy(kind *resource.Any, typer runtime.ObjectTyper, now func() time.Time) strategy {
	return strategy{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator, kind: kind, now: now}
}

// ObjectKinds names an object in refusals as it is stored: an Event is one of the core group.
func (s strategy) ObjectKinds(obj runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	if s.kind.ToStored != nil {
		obj = s.kind.ToStored(obj.(resource.Object))
	}
	return s.ObjectTyper.ObjectKinds(obj)
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
	if s.kind.StampUpdate != nil {
		s.kind.StampUpdate(obj, old, s.now())
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
func (s strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return s.judge(ctx, obj, old, s.kind.ValidateUpdate, s.kind.ValidateChange)
}

// judge runs those of the kind's rules that it has.
func (s strategy) judge(ctx context.Context, o, oldObj runtime.Object, rule func(obj, old resource.Object) field.ErrorList,
	warning func(ctx context.Context, obj, old resource.Object) field.ErrorList) field.ErrorList {
	obj, old := o.(resource.Object), oldObj.(resource.Object)
	errs := s.kind.ValidateFinalizers(obj, old)
	if rule != nil {
		errs = append(errs, rule(obj, old)...)
	}
	if warning != nil {
		errs = append(errs, warning(ctx, obj, old)...)
	}
	return errs
}

// ValidateDeclaratively has nothing to add; it shows values as upstream does, and says once what upstream's common rules
// for updates say twice.
func (s strategy) ValidateDeclaratively(_ context.Context, _, _ runtime.Object, errs field.ErrorList, _ operation.Type,
	_ rest.DeclarativeValidationConfig) field.ErrorList {
	said := sets.New[string]()
	return slices.DeleteFunc(resource.InternalValues(errs), func(err *field.Error) bool {
		text := err.Error()
		defer said.Insert(text)
		return said.Has(text)
	})
}

// DeclarativeValidationConfig is empty: no rules are generated here.
func (s strategy) DeclarativeValidationConfig(context.Context, runtime.Object, runtime.Object) rest.DeclarativeValidationConfig {
	return rest.DeclarativeValidationConfig{}
}

// WarningsOnCreate are the kind's, and what nobody will do for the object.
func (s strategy) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string {
	warnings := s.WarningsOnUpdate(ctx, obj, nil)
	if service, ok := obj.(*corev1.Service); ok {
		warnings = append(warnings, unattended.Service(service)...)
	}
	return warnings
}

func (s strategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	var warnings []string
	if s.kind.Warnings != nil {
		warnings = s.kind.Warnings(obj.(resource.Object))
	}
	if s.kind.ChangeWarnings != nil {
		was, _ := old.(resource.Object) // nil in a create
		warnings = append(warnings, s.kind.ChangeWarnings(obj.(resource.Object), was)...)
	}
	return warnings
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

func (s statusStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return s.judge(ctx, obj, old, s.kind.ValidateStatus, s.kind.ValidateStatusChange)
}

// WarningsOnUpdate: who writes a status is not told about the spec, which others wrote.
func (s statusStrategy) WarningsOnUpdate(_ context.Context, obj, _ runtime.Object) []string {
	return s.kind.StatusWarnings(obj.(resource.Object))
}

func (s statusStrategy) AllowCreateOnUpdate(context.Context) bool { return false }
