package apiextensions

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"
)

const withSchema = `
metadata: {name: foos.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: foos, singular: foo, kind: Foo, listKind: FooList}
  versions:
  - name: v1
    served: true
    storage: true
    selectableFields: [{jsonPath: .spec.color}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              color: {type: string}
              other: SCHEMA
status:
  storedVersions: [v1]
`

// TestSchemasThatAreNotStructural are refused, not a panic.
func TestSchemasThatAreNotStructural(t *testing.T) {
	update := validatePair(validation.ValidateCustomResourceDefinitionUpdate)
	for _, schema := range []string{
		`{type: string, $ref: x}`, `{type: string, id: x}`, `{type: object, additionalItems: {}}`, `{type: object, patternProperties: {k: {}}}`,
		`{type: object, x-kubernetes-preserve-unknown-fields: false}`, `{type: string, oneOf: [{$ref: x}]}`,
	} {
		var d apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal([]byte(strings.Replace(withSchema, "SCHEMA", schema, 1)), &d); err != nil {
			t.Fatal(err)
		}
		if errs := validate(&d); len(errs) == 0 {
			t.Errorf("%s is accepted", schema)
		}
		if errs := update(&d, d.DeepCopy()); len(errs) == 0 {
			t.Errorf("%s is accepted in an update", schema)
		}
	}
}

// TestSelectableFieldsWithoutASchema: a schema that is there and says nothing.
func TestSelectableFieldsWithoutASchema(t *testing.T) {
	text, _, _ := strings.Cut(withSchema, "      openAPIV3Schema")
	var d apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal([]byte(strings.Replace(text, "schema:", "schema: {}", 1)), &d); err != nil {
		t.Fatal(err)
	}
	if errs := validate(&d); len(errs) == 0 {
		t.Error("accepted")
	}
}
