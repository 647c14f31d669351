package crd

import (
	"context"
	"maps"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// rules are what a version demands of writes. The validators are compiled at the
// first write.
type rules struct {
	gvk        schema.GroupVersionKind
	scale      *apiextensionsv1.CustomResourceSubresourceScale
	hasStatus  bool
	validators func() (*validators, error)
	// prune takes off what the schema does not know: admission may have added it. Nulls
	// stay and are judged, since an apply may have set them.
	prune func(*unstructured.Unstructured)
}

type validators struct {
	structural *structuralschema.Structural
	// schema judges whole objects, status their status; it is nil without a schema.
	schema, status validation.SchemaValidator
	// cel is nil where there are no rules.
	cel *schemacel.Validator
}

func newRules(d *definition, spec *apiextensionsv1.CustomResourceDefinitionVersion) rules {
	return rules{
		gvk:       d.groupKind().WithVersion(spec.Name),
		scale:     subresources(spec).Scale,
		hasStatus: subresources(spec).Status != nil,
		validators: sync.OnceValues(func() (*validators, error) {
			return newValidators(d, spec.Name, subresources(spec).Status != nil)
		}),
		prune: func(u *unstructured.Unstructured) {
			// Without a schema that can be read there are no handlers, and it cannot fail otherwise.
			_, _ = coercer{definition: d, lenient: true}.prune(u.Object, spec.Name)
		},
	}
}

func newValidators(d *definition, version string, hasStatus bool) (*validators, error) {
	structural, err := d.schemas.of(version)
	if err != nil {
		return nil, err
	}
	props, err := internalSchema(d.crd, version)
	if err != nil {
		return nil, err
	}
	v := &validators{structural: structural, cel: schemacel.NewValidator(structural, true, celconfig.PerCallLimit)}
	if v.schema, _, err = validation.NewSchemaValidator(props); err != nil {
		return nil, err
	}
	if status, ok := statusOf(props); ok && hasStatus {
		v.status, _, err = validation.NewSchemaValidator(&status)
	}
	return v, err
}

func statusOf(props *apiextensions.JSONSchemaProps) (apiextensions.JSONSchemaProps, bool) {
	if props == nil {
		return apiextensions.JSONSchemaProps{}, false
	}
	status, ok := props.Properties["status"]
	return status, ok
}

func (r rules) prepareCreate(u *unstructured.Unstructured) {
	r.prune(u)
	if r.hasStatus {
		delete(u.Object, "status")
	}
	u.SetGeneration(1)
}

// prepareUpdate carries the status over. Every change but that of metadata counts.
func (r rules) prepareUpdate(u, old *unstructured.Unstructured) {
	r.prune(u)
	if r.hasStatus {
		delete(u.Object, "status")
		if status, ok := old.Object["status"]; ok {
			u.Object["status"] = status
		}
	}
	if !apiequality.Semantic.DeepEqual(withoutMetadata(u), withoutMetadata(old)) {
		u.SetGeneration(old.GetGeneration() + 1)
	}
}

func withoutMetadata(u *unstructured.Unstructured) map[string]any {
	rest := maps.Clone(u.Object)
	delete(rest, "metadata")
	return rest
}

// prepareStatus takes nothing but the status, and who owns its fields.
func (r rules) prepareStatus(u, old *unstructured.Unstructured) {
	r.prune(u)
	status, ok := u.Object["status"]
	owners := u.GetManagedFields()
	u.Object = old.DeepCopy().Object
	u.SetManagedFields(owners)
	delete(u.Object, "status")
	if ok {
		u.Object["status"] = status
	}
}

// validate runs the rules of the schema on a new object. CEL has a budget of its own,
// so it needs no deadline.
func (r rules) validate(u *unstructured.Unstructured) field.ErrorList {
	v, err := r.validators()
	if err != nil {
		return broken(err)
	}
	if errs := r.validateType(u); len(errs) > 0 {
		return errs
	}
	errs := validation.ValidateCustomResource(nil, u.Object, v.schema)
	errs = append(errs, r.validateScale(u)...)
	errs = append(errs, objectmeta.Validate(context.Background(), nil, u.Object, v.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, u.Object)...)
	return v.withCEL(context.Background(), errs, u, nil)
}

// validateUpdate lets what was invalid before, and has not been touched, stay so. CEL rules that it breaks are warnings.
func (r rules) validateUpdate(ctx context.Context, u, old *unstructured.Unstructured) field.ErrorList {
	v, err := r.validators()
	if err != nil {
		return broken(err)
	}
	if errs := r.validateType(u); len(errs) > 0 {
		return errs
	}
	correlated := common.NewCorrelatedObject(u.Object, old.Object, &model.Structural{Structural: v.structural})
	errs := validation.ValidateCustomResourceUpdate(nil, u.Object, old.Object, v.schema, validation.WithRatcheting(correlated))
	errs = append(errs, r.validateScale(u)...)
	errs = append(errs, objectmeta.Validate(context.Background(), nil, u.Object, v.structural, false)...)
	errs = append(errs, v.newListErrors(u, old)...)
	return v.withCEL(ctx, errs, u, old, schemacel.WithRatcheting(correlated))
}

func (r rules) validateStatus(ctx context.Context, u, old *unstructured.Unstructured) field.ErrorList {
	v, err := r.validators()
	if err != nil {
		return broken(err)
	}
	if errs := r.validateType(u); len(errs) > 0 {
		return errs
	}
	correlated := common.NewCorrelatedObject(u.Object, old.Object, &model.Structural{Structural: v.structural})
	var options []validation.ValidationOption
	if v.structural != nil {
		options = append(options, validation.WithRatcheting(correlated.Key("status")))
	}
	var errs field.ErrorList
	if status, ok := u.Object["status"]; ok {
		errs = validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, old.Object["status"], v.status, options...)
	}
	errs = append(errs, r.validateScaleStatus(u)...)
	errs = append(errs, v.newListErrors(u, old)...)
	return v.withCEL(ctx, errs, u, old, schemacel.WithRatcheting(correlated))
}

// validateType: whoever patches an object may change what it says it is, and what an
// applied object says in its metadata went through no decoder.
func (r rules) validateType(u *unstructured.Unstructured) field.ErrorList {
	var errs field.ErrorList
	if kind := u.GetKind(); kind != r.gvk.Kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), kind, "must be "+r.gvk.Kind))
	}
	if version := u.GetAPIVersion(); version != r.gvk.GroupVersion().String() {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), version, "must be "+r.gvk.GroupVersion().String()))
	}
	if _, _, err := objectmeta.GetObjectMeta(u.Object, false); err != nil {
		errs = append(errs, field.Invalid(field.NewPath("metadata"), u.Object["metadata"], err.Error()))
	}
	return errs
}

func broken(err error) field.ErrorList {
	return field.ErrorList{field.InternalError(nil, err)}
}

// newListErrors are broken invariants of list sets and maps, if none were broken before.
func (v *validators) newListErrors(u, old *unstructured.Unstructured) field.ErrorList {
	if len(listtype.ValidateListSetsAndMaps(nil, v.structural, old.Object)) > 0 {
		return nil
	}
	return listtype.ValidateListSetsAndMaps(nil, v.structural, u.Object)
}

// withCEL adds what CEL rules say, unless the object has not even the right form.
func (v *validators) withCEL(ctx context.Context, errs field.ErrorList, u, old *unstructured.Unstructured,
	options ...schemacel.Option) field.ErrorList {
	if v.cel == nil {
		return errs
	}
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported,
			field.ErrorTypeRequired,
			field.ErrorTypeTooLong,
			field.ErrorTypeTooMany,
			field.ErrorTypeTypeInvalid:
			return append(
				errs,
				field.Invalid(
					nil,
					nil,
					"some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
				),
			)
		}
	}
	var before any
	if old != nil {
		before = old.Object
	}
	broken, _ := v.cel.Validate(ctx, nil, v.structural, u.Object, before, celconfig.RuntimeCELCostBudget, options...)
	return append(errs, broken...)
}
