package apiextensions

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Where the warning says that every number is refused, upstream's rule refuses one that fits, and else none.
func TestBoundsBeyondTheFormatRefuseEveryNumber(t *testing.T) {
	const uint32Max, int64End, beyondInt64 = 1<<32 - 1, 1 << 62, 1 << 70
	for name, c := range map[string]struct {
		schema apiextensions.JSONSchemaProps
		warns  bool
	}{
		"a uint32's maximum":        {integer("int32", uint32Max), true},
		"an int32's":                {integer("int32", 1<<31-1), false},
		"with room in the format":   {integer("int64", uint32Max), false},
		"an int64's":                {integer("int64", int64End), false},
		"beyond each format":        {integer("int64", beyondInt64), true},
		"without format":            {integer("", uint32Max), false},
		"a format that is left out": {integer("uint32", uint32Max), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := boundsBeyondFormat(&c.schema); (len(got) > 0) != c.warns {
				t.Errorf("warnings = %q", got)
			}
			object := apiextensions.JSONSchemaProps{Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{"n": c.schema}}
			rule, _, err := schemavalidation.NewSchemaValidator(&object)
			if err != nil {
				t.Fatal(err)
			}
			wrong := schemavalidation.ValidateCustomResource(field.NewPath("spec"), map[string]any{"n": int64(64512)}, rule)
			if (len(wrong) > 0) != c.warns {
				t.Errorf("upstream's rule says %v", wrong)
			}
		})
	}
}

func integer(format string, maximum float64) apiextensions.JSONSchemaProps {
	return apiextensions.JSONSchemaProps{Type: "integer", Format: format, Maximum: &maximum}
}
