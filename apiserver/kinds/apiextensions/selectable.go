package apiextensions

import (
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// withoutSchema takes the selectable fields away from what has no structural schema,
// and says why. The published rules look them up in the schema and panic without one.
func withoutSchema(in *apiextensions.CustomResourceDefinition) field.ErrorList {
	spec, path := &in.Spec, field.NewPath("spec")
	errs := dropSelectable(&spec.SelectableFields, spec.Validation, path.Child("validation"))
	for i := range spec.Versions {
		version := &spec.Versions[i]
		errs = append(errs, dropSelectable(&version.SelectableFields, version.Schema, path.Child("versions").Index(i).Child("schema"))...)
	}
	return errs
}

func dropSelectable(
	selectable *[]apiextensions.SelectableField,
	schema *apiextensions.CustomResourceValidation,
	path *field.Path,
) field.ErrorList {
	if len(*selectable) == 0 || schema == nil {
		return nil
	}
	structural, err := structuralschema.NewStructural(schema.OpenAPIV3Schema)
	switch {
	case err != nil:
		*selectable = nil
		return field.ErrorList{field.Invalid(path.Child("openAPIV3Schema"), "", err.Error())}
	case structural == nil:
		*selectable = nil
		return field.ErrorList{field.Required(path.Child("openAPIV3Schema"), "selectableFields need a schema")}
	}
	return nil
}
