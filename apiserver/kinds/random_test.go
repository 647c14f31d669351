package kinds

import (
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// randomObjects of each kind are tried; the seed is fixed, so a failure repeats.
const randomObjects = 100

// TestRandomObjects: whatever decoded, defaults settle at once, and nothing that
// only reads panics or changes the object.
func TestRandomObjects(t *testing.T) {
	fill := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, schemaFuncs), rand.NewSource(1), serializer.NewCodecFactory(scheme()))
	eachKind(t, func(t *testing.T, kind *resource.Any) {
		for i := range randomObjects {
			obj, old := kind.New(), kind.New()
			fill.Fill(obj)
			fill.Fill(old)
			if kind.Default != nil {
				kind.Default(obj)
				once := obj.DeepCopyObject()
				if kind.Default(obj); !cmp.Equal(once, runtime.Object(obj)) {
					t.Fatalf("object %d: defaults twice changed it again:\n%s", i, cmp.Diff(once, runtime.Object(obj)))
				}
			}
			before := obj.DeepCopyObject()
			readEverything(kind, obj, old)
			if !cmp.Equal(before, runtime.Object(obj)) {
				t.Fatalf("object %d: a reading function changed it:\n%s", i, cmp.Diff(before, runtime.Object(obj)))
			}
			write(kind, obj, old)
		}
	})
}

// schemaFuncs keep schemas of custom resources small: they contain themselves in
// many ways, and hold JSON.
func schemaFuncs(serializer.CodecFactory) []any {
	return []any{
		func(s *apiextensionsv1.JSONSchemaProps, c randfill.Continue) {
			c.Fill(&s.Type)
			c.Fill(&s.Format)
			c.Fill(&s.Nullable)
			c.Fill(&s.Default)
			c.Fill(&s.XListType)
			c.Fill(&s.XValidations)
		},
		func(j *apiextensionsv1.JSON, _ randfill.Continue) { j.Raw = []byte("3") },
	}
}

// write runs what changes an object on its way to the store.
func write(kind *resource.Any, obj, old resource.Object) {
	if kind.PrepareUpdate != nil {
		kind.PrepareUpdate(obj, old)
	}
	if kind.PrepareStatus != nil {
		kind.PrepareStatus(obj, old)
	}
	if kind.PrepareCreate != nil {
		kind.PrepareCreate(obj)
	}
}
