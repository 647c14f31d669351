package crd

import (
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	structuraldefaulting "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
)

// schemas are the structural schemas of a definition's versions, each made when it
// is first needed. A version without a schema has nil.
type schemas map[string]func() (*structuralschema.Structural, error)

func newSchemas(crd *apiextensionsv1.CustomResourceDefinition) schemas {
	all := schemas{}
	for i := range crd.Spec.Versions {
		name := crd.Spec.Versions[i].Name
		all[name] = sync.OnceValues(func() (*structuralschema.Structural, error) { return newStructural(crd, name) })
	}
	return all
}

// of returns the schema of a version; one that the definition does not have (any
// more) has none.
func (s schemas) of(version string) (*structuralschema.Structural, error) {
	get, ok := s[version]
	if !ok {
		return nil, nil
	}
	return get()
}

func newStructural(crd *apiextensionsv1.CustomResourceDefinition, version string) (*structuralschema.Structural, error) {
	props, err := internalSchema(crd, version)
	if err != nil || props == nil {
		return nil, err
	}
	s, err := structuralschema.NewStructural(props)
	if crd.Spec.PreserveUnknownFields {
		return s, nil // an old definition: its schema need not be structural
	}
	if err != nil {
		return nil, fmt.Errorf("schema of %s, version %s: %w", crd.Name, version, err)
	}
	s = s.DeepCopy() // its defaults are the definition's own until here
	if err := structuraldefaulting.PruneDefaults(s); err != nil {
		return nil, fmt.Errorf("defaults of %s, version %s: %w", crd.Name, version, err)
	}
	return s, nil
}

// internalSchema is a version's schema in the form of the published functions, or nil.
func internalSchema(crd *apiextensionsv1.CustomResourceDefinition, version string) (*apiextensions.JSONSchemaProps, error) {
	validation, err := apihelpers.GetSchemaForVersion(crd, version)
	if err != nil || validation == nil {
		return nil, err
	}
	// The conversion shares what it can with its input, which must not change.
	var out apiextensions.CustomResourceValidation
	err = apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(validation.DeepCopy(), &out, nil)
	return out.OpenAPIV3Schema, err
}
