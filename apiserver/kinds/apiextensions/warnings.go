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
	openapivalidate "k8s.io/kube-openapi/pkg/validation/validate"
)

// warnings names what is accepted in schemas but has no effect, or another than its author can mean.
func warnings(d *definition) []string {
	in, err := internal(d)
	if err != nil {
		return nil // validation says so
	}
	var formats []string
	setsOfObjects, beyond := sets.New[string](), sets.New[string]()
	eachSchema(in, func(s *apiextensions.JSONSchemaProps) {
		formats = append(formats, unknownFormats(s)...)
		beyond.Insert(boundsBeyondFormat(s)...)
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
	return slices.Concat(all, sets.List(setsOfObjects), sets.List(beyond))
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

// boundsBeyondFormat tells of bounds that no number of the format can have: with one of them upstream's rule refuses every number
// (k8s.io/kube-openapi/pkg/validation/validate, numberValidator), and controller-gen writes such bounds for a Go uint32.
func boundsBeyondFormat(s *apiextensions.JSONSchemaProps) (warnings []string) {
	if s.Type != "integer" || s.Format != "int32" && s.Format != "int64" {
		return nil
	}
	for name, bound := range map[string]*float64{"minimum": s.Minimum, "maximum": s.Maximum, "multipleOf": s.MultipleOf} {
		if bound != nil && openapivalidate.IsValueValidAgainstRange(*bound, s.Type, s.Format, "", "") != nil {
			warnings = append(warnings, fmt.Sprintf("%s %.0f is no %s, so that every number is refused: leave out the format, or the bound",
				name, *bound, s.Format))
		}
	}
	return warnings
}

func itemType(s *apiextensions.JSONSchemaProps) string {
	if s.Items == nil || s.Items.Schema == nil {
		return ""
	}
	return s.Items.Schema.Type
}
