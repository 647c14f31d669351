package kinds_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
)

// TestWhatDecodesJSONInItsOwnWay: an object is the same whether a client sends JSON or protobuf, unless a type of its fields
// decodes JSON in its own way. Each such type has its reason here why both come to the same.
func TestWhatDecodesJSONInItsOwnWay(t *testing.T) {
	want := []string{
		"intstr.IntOrString",   // protobuf has the kind beside the value
		"resource.Quantity",    // protobuf has the text of JSON
		"runtime.RawExtension", // both keep the bytes
		"v1.FieldsV1",          // both keep the bytes
		"v1.JSON",              // asJSON of package apiextensions
		"v1.JSONSchemaPropsOrArray",
		"v1.JSONSchemaPropsOrBool",
		"v1.JSONSchemaPropsOrStringArray",
		"v1.MicroTime", // protobuf is cut to what JSON has
		"v1.Time",      // protobuf is cut to whole seconds, as JSON
	}
	seen, found := map[reflect.Type]bool{}, []string{}
	for _, kind := range kinds.All() {
		walk(reflect.TypeOf(kind.New()), seen, func(own reflect.Type) { found = append(found, own.String()) })
	}
	slices.Sort(found)
	if diff := cmp.Diff(want, slices.Compact(found)); diff != "" {
		t.Error(diff)
	}
}

// walk calls own for each type that is reached and decodes JSON itself; it goes on in what that holds.
func walk(in reflect.Type, seen map[reflect.Type]bool, own func(reflect.Type)) {
	if seen[in] || in.PkgPath() == "time" { // v1.Time holds one
		return
	}
	seen[in] = true
	if in.Kind() == reflect.Struct && reflect.PointerTo(in).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		own(in)
	}
	switch in.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		walk(in.Elem(), seen, own)
	case reflect.Map:
		walk(in.Key(), seen, own)
		walk(in.Elem(), seen, own)
	case reflect.Struct:
		for field := range in.Fields() {
			if field.IsExported() {
				walk(field.Type, seen, own)
			}
		}
	}
}
