package resource

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Erase hides the Go type of a kind. The functions of the result panic when they
// are handed an object of another type: that is a bug of the caller.
func Erase[T Object](k Kind[T]) *Any {
	return &Any{
		GroupVersionKind: k.GroupVersionKind,
		Plural:           k.Plural, Singular: k.Singular,
		ShortNames: k.ShortNames, Categories: k.Categories,
		ClusterScoped:          k.ClusterScoped,
		New:                    func() Object { return k.New() },
		NewList:                k.NewList,
		ValidateName:           k.ValidateName,
		Default:                eraseDo(k.Default),
		PrepareCreate:          eraseDo(k.PrepareCreate),
		Requested:              eraseRequested(k.Requested),
		PrepareUpdate:          eraseDoPair(k.PrepareUpdate),
		StampUpdate:            eraseStamp(k.StampUpdate),
		PrepareStatus:          eraseDoPair(k.PrepareStatus),
		Validate:               eraseGet[T, field.ErrorList](k.Validate),
		ValidateUpdate:         eraseValidatePair(k.ValidateUpdate),
		ValidateStatus:         eraseValidatePair(k.ValidateStatus),
		ValidateChange:         eraseValidateIn(k.ValidateChange),
		ValidateStatusChange:   eraseValidateIn(k.ValidateStatusChange),
		Warnings:               eraseGet[T, []string](k.Warnings),
		ChangeWarnings:         eraseChangeWarnings(k.ChangeWarnings),
		StatusWarnings:         eraseGet[T, []string](orNone(k.StatusWarnings)),
		Spec:                   eraseGet[T, any](k.Spec),
		Status:                 eraseGet[T, any](k.Status),
		Resets:                 k.Resets,
		StatusResets:           k.StatusResets,
		SplitsStatus:           k.SplitsStatus,
		StatusOnCreate:         k.StatusOnCreate,
		Generation:             k.Generation,
		AllowCreateOnUpdate:    k.AllowCreateOnUpdate,
		RequireResourceVersion: k.RequireResourceVersion,
		GracefulDelete:         eraseGraceful(k.GracefulDelete),
		Protected:              eraseGet[T, string](k.Protected),
		Bookmark:               eraseDo(k.Bookmark),
		OneByOne:               k.OneByOne,
		OrphanByDefault:        k.OrphanByDefault,
		OrphanWarning:          k.OrphanWarning,
		NoDependents:           k.NoDependents,
		MarkDeleted:            eraseDo(k.MarkDeleted),
		ReturnDeleted:          k.ReturnDeleted,
		Finalizing:             eraseGet[T, bool](k.Finalizing),
		Columns:                eraseColumns(k.Columns),
		Fields:                 eraseGet[T, fields.Set](k.Fields),
		Scale:                  eraseScale(k.Scale),
		Parts:                  eraseParts(k.Parts),
		CreateOnly:             k.CreateOnly,
		ReadOnly:               k.ReadOnly,
		Subresources:           k.Subresources,
		Verbs:                  k.Verbs,
		Schema:                 k.Schema,
		SchemaID:               k.SchemaID,
		StoredAs:               k.StoredAs,
		StorageVersion:         k.StorageVersion,
		ToStored:               eraseGet[T, Object](k.ToStored),
		FromStored:             eraseFromStored(k.FromStored),
	}
}

func eraseDo[T Object](do func(T)) func(Object) {
	if do == nil {
		return nil
	}
	return func(obj Object) { do(obj.(T)) }
}

func eraseDoPair[T Object](do func(T, T)) func(Object, Object) {
	if do == nil {
		return nil
	}
	return func(obj, old Object) { do(obj.(T), old.(T)) }
}

func eraseStamp[T Object](stamp func(T, T, time.Time)) func(Object, Object, time.Time) {
	if stamp == nil {
		return nil
	}
	return func(obj, old Object, now time.Time) { stamp(obj.(T), old.(T), now) }
}

func eraseGet[T Object, R any](get func(T) R) func(Object) R {
	if get == nil {
		return nil
	}
	return func(obj Object) R { return get(obj.(T)) }
}

func eraseValidatePair[T Object](validate func(T, T) field.ErrorList) func(Object, Object) field.ErrorList {
	if validate == nil {
		return nil
	}
	return func(obj, old Object) field.ErrorList { return validate(obj.(T), old.(T)) }
}

func eraseValidateIn[T Object](
	validate func(context.Context, T, T) field.ErrorList,
) func(context.Context, Object, Object) field.ErrorList {
	if validate == nil {
		return nil
	}
	return func(ctx context.Context, obj, old Object) field.ErrorList { return validate(ctx, obj.(T), old.(T)) }
}

func eraseChangeWarnings[T Object](warnings func(T, T) []string) func(Object, Object) []string {
	if warnings == nil {
		return nil
	}
	return func(obj, old Object) []string {
		var was T
		if old != nil {
			was = old.(T)
		}
		return warnings(obj.(T), was)
	}
}

// orNone is the warnings, or none.
func orNone[T Object](warnings func(T) []string) func(T) []string {
	if warnings == nil {
		return func(T) []string { return nil }
	}
	return warnings
}

func eraseGraceful[T Object](graceful func(T, *metav1.DeleteOptions) bool) func(Object, *metav1.DeleteOptions) bool {
	if graceful == nil {
		return nil
	}
	return func(obj Object, options *metav1.DeleteOptions) bool { return graceful(obj.(T), options) }
}

func eraseFromStored[T Object](from func(Object) T) func(Object) Object {
	if from == nil {
		return nil
	}
	return func(stored Object) Object { return from(stored) }
}

func eraseColumns[T Object](columns []Column[T]) []Column[Object] {
	erased := make([]Column[Object], len(columns))
	for i, c := range columns {
		erased[i] = Column[Object]{
			Name: c.Name, Type: c.Type, Format: c.Format, Description: c.Description, Priority: c.Priority,
			Cell: func(obj Object, now time.Time) any { return c.Cell(obj.(T), now) },
		}
	}
	return erased
}

func eraseParts[T Object](parts []Part[T]) []Part[Object] {
	var erased []Part[Object]
	for _, p := range parts {
		erased = append(erased, Part[Object]{
			Name: p.Name, Resets: p.Resets,
			Prepare:  func(obj, old Object, now time.Time) { p.Prepare(obj.(T), old.(T), now) },
			Validate: func(obj, old Object, now time.Time) field.ErrorList { return p.Validate(obj.(T), old.(T), now) },
		})
	}
	return erased
}

func eraseRequested[T Object](record func(T, user.Info)) func(Object, user.Info) {
	if record == nil {
		return nil
	}
	return func(obj Object, by user.Info) { record(obj.(T), by) }
}

func eraseScale[T Object](s *Scale[T]) *Scale[Object] {
	if s == nil {
		return nil
	}
	return &Scale[Object]{
		Replicas:       eraseGet[T, int32](s.Replicas),
		SetReplicas:    func(obj Object, replicas int32) { s.SetReplicas(obj.(T), replicas) },
		StatusReplicas: eraseGet[T, int32](s.StatusReplicas),
		HasReplicas:    eraseGet[T, bool](s.HasReplicas),
		Paths:          s.Paths,
		Selector:       eraseGet[T, string](s.Selector),
	}
}
