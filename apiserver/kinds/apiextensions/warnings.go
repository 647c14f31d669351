package apiextensions

import (
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// warnings names what is accepted in schemas but has no effect.
func warnings(d *definition) []string {
	in, err := internal(d)
	if err != nil {
		return nil // validation says so
	}
	var formats []string
	setsOfObjects := sets.New[string]()
	eachSchema(in, func(s *apiextensions.JSONSchemaProps) {
		formats = append(formats, unknownFormats(s)...)
		if t := itemType(s); s.XListType != nil && *s.XListType == "set" && (t == "object" || t == "array") {
			setsOfObjects.Insert(
				fmt.Sprintf(
					"x-kubernetes-list-type: set for items of type %q is not supported by server-side apply or CEL validation rules",
					t,
				),
			)
		}
	})
	var all []string
	for _, format := range formats {
		all = append(all, fmt.Sprintf("unrecognized format %q", format))
	}
	return slices.Concat(all, sets.List(setsOfObjects))
}

// eachSchema visits every node of every version's schema.
func eachSchema(d *apiextensions.CustomResourceDefinition, visit func(*apiextensions.JSONSchemaProps)) {
	walk := func(v *apiextensions.CustomResourceValidation) {
		if v == nil || v.OpenAPIV3Schema == nil {
			return
		}
		validation.SchemaHas(v.OpenAPIV3Schema, func(s *apiextensions.JSONSchemaProps) bool {
			visit(s)
			return false
		})
	}
	walk(d.Spec.Validation)
	for _, v := range d.Spec.Versions {
		walk(v.Schema)
	}
}

func unknownFormats(s *apiextensions.JSONSchemaProps) []string {
	if s.Format == "" {
		return nil
	}
	node := &spec.Schema{SchemaProps: spec.SchemaProps{Format: s.Format, Type: []string{s.Type}}}
	return schemavalidation.GetUnrecognizedFormats(node, environment.DefaultCompatibilityVersion())
}

func itemType(s *apiextensions.JSONSchemaProps) string {
	if s.Items == nil || s.Items.Schema == nil {
		return ""
	}
	return s.Items.Schema.Type
}
