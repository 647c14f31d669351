package apiextensions

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A schema as a Go program builds it, and as protobuf hands it on, says after the defaults what its JSON says.
func TestSchemaSaysWhatItsJSONSays(t *testing.T) {
	text := schemaProps{Type: "string"}
	odd := schemaProps{
		Type: "object", Default: &apiextensionsv1.JSON{}, Example: &apiextensionsv1.JSON{Raw: []byte("null")},
		Enum:                 []apiextensionsv1.JSON{{}, {Raw: []byte(`"a"`)}},
		AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &text},
		AdditionalItems:      &apiextensionsv1.JSONSchemaPropsOrBool{},
		Items:                &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &text, JSONSchemas: []schemaProps{text}},
		Dependencies: apiextensionsv1.JSONSchemaDependencies{
			"both":   {Schema: &text, Property: []string{"x"}},
			"schema": {Schema: &text},
		},
	}
	whole := schemaProps{
		Not: odd.DeepCopy(), AllOf: []schemaProps{odd}, OneOf: []schemaProps{odd}, AnyOf: []schemaProps{odd},
		Properties:           map[string]schemaProps{"p": odd},
		PatternProperties:    map[string]schemaProps{"q": odd},
		Definitions:          apiextensionsv1.JSONSchemaDefinitions{"r": odd},
		Dependencies:         apiextensionsv1.JSONSchemaDependencies{"s": {Schema: odd.DeepCopy()}},
		AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: odd.DeepCopy()},
		AdditionalItems:      &apiextensionsv1.JSONSchemaPropsOrBool{Schema: odd.DeepCopy()},
		Items:                &apiextensionsv1.JSONSchemaPropsOrArray{Schema: odd.DeepCopy()},
	}
	for name, built := range map[string]schemaProps{
		"in every place": whole,
		"of a list":      {Items: &apiextensionsv1.JSONSchemaPropsOrArray{JSONSchemas: []schemaProps{odd}}},
		"of nothing":     {Items: &apiextensionsv1.JSONSchemaPropsOrArray{}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &definition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{}, {Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: built.DeepCopy()}}}}}
			protobuf, err := d.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			var sent definition
			if err := sent.Unmarshal(protobuf); err != nil {
				t.Fatal(err)
			}
			setDefaults(&sent)
			if diff := cmp.Diff(byJSON(t, &built), sent.Spec.Versions[1].Schema.OpenAPIV3Schema); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// byJSON is a schema that was sent as JSON.
func byJSON(t *testing.T, s *schemaProps) *schemaProps {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var decoded schemaProps
	if err := json.Unmarshal(text, &decoded); err != nil {
		t.Fatal(err)
	}
	return &decoded
}
