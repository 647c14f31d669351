package kinds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/setpoint-io/setpoint/apiserver/kinds/kindstest"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

var scheme = sync.OnceValue(NewScheme)

// eachKind runs a test for every kind in All.
func eachKind(t *testing.T, test func(t *testing.T, kind *resource.Any)) {
	t.Helper()
	for _, kind := range All() {
		t.Run(kind.GroupResource().String(), func(t *testing.T) { test(t, kind) })
	}
}

func TestKindIsComplete(t *testing.T) {
	seen := map[string]bool{}
	eachKind(t, func(t *testing.T, kind *resource.Any) {
		if seen[kind.GroupVersionResource().String()] {
			t.Errorf("%s is listed twice", kind.GroupVersionResource())
		}
		seen[kind.GroupVersionResource().String()] = true
		gvks, _, err := scheme().ObjectKinds(kind.New())
		if err != nil || len(gvks) != 1 || gvks[0] != kind.GroupVersionKind {
			t.Errorf("New is %v in the scheme (%v), want %v", gvks, err, kind.GroupVersionKind)
		}
		lists, _, err := scheme().ObjectKinds(kind.NewList())
		if err != nil || len(lists) != 1 || lists[0].Kind != kind.GroupVersionKind.Kind+"List" {
			t.Errorf("NewList is %v in the scheme (%v)", lists, err)
		}
		if !meta.IsListType(kind.NewList()) {
			t.Error("NewList has no items")
		}
		if kind.HasStatus() && kind.Spec == nil {
			t.Error("a kind with a status needs a spec to carry over")
		}
		if len(kind.Columns) == 0 || kind.Columns[0].Name != "Name" && kind.Plural != "events" {
			t.Error("the first column is the name")
		}
	})
}

// Upstream publishes one object of each kind with every field set.
func TestFixturesSurviveTheCodecs(t *testing.T) {
	codecs := serializer.NewCodecFactory(scheme())
	eachKind(t, func(t *testing.T, kind *resource.Any) {
		asJSON, asProto := compactJSON(t, fixture(t, kind, "json")), fixture(t, kind, "pb")
		fromJSON, _, err := codecs.UniversalDeserializer().Decode(asJSON, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		fromProto, _, err := codecs.UniversalDeserializer().Decode(asProto, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !equality.Semantic.DeepEqual(fromJSON, fromProto) {
			t.Error("JSON and protobuf decode to different objects:\n", cmp.Diff(fromJSON, fromProto))
		}
		checkEncodings(t, kind, fromJSON.(resource.Object), asJSON)
	})
}

func checkEncodings(t *testing.T, kind *resource.Any, obj resource.Object, asJSON []byte) {
	t.Helper()
	obj.GetObjectKind().SetGroupVersionKind(kind.GroupVersionKind)
	got, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(jsonValue(t, asJSON), jsonValue(t, got)); diff != "" {
		t.Error("JSON changed:\n", diff)
	}
	var encoded bytes.Buffer
	codec := protobuf.NewSerializer(scheme(), scheme())
	if err := codec.Encode(obj, &encoded); err != nil {
		t.Fatal(err)
	}
	back, _, err := codec.Decode(encoded.Bytes(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	back.GetObjectKind().SetGroupVersionKind(kind.GroupVersionKind)
	if !equality.Semantic.DeepEqual(obj, back) {
		t.Error("protobuf changed:\n", cmp.Diff(obj, back))
	}
}

// compactJSON removes white space, which raw extensions would keep.
func compactJSON(t *testing.T, text []byte) []byte {
	t.Helper()
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		t.Fatal(err)
	}
	return compact.Bytes()
}

func jsonValue(t *testing.T, text []byte) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestDefaultsAreIdempotent(t *testing.T) {
	eachKind(t, func(t *testing.T, kind *resource.Any) {
		if kind.Default == nil {
			return
		}
		for name, obj := range map[string]resource.Object{"empty": kind.New(), "full": decodedFixture(t, kind)} {
			kind.Default(obj)
			once := obj.DeepCopyObject()
			kind.Default(obj)
			if diff := cmp.Diff(once, runtime.Object(obj)); diff != "" {
				t.Errorf("%s: defaults twice changed it again:\n%s", name, diff)
			}
		}
	})
}

func TestSchemeAppliesDefaults(t *testing.T) {
	pod := &corev1.Pod{}
	scheme().Default(pod)
	if pod.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		t.Errorf("restartPolicy = %q after scheme.Default", pod.Spec.RestartPolicy)
	}
}

// No function of a kind may panic on, or change, an object that decoded.
func TestFunctionsLeaveTheObjectAlone(t *testing.T) {
	eachKind(t, func(t *testing.T, kind *resource.Any) {
		for name, obj := range map[string]resource.Object{"empty": kind.New(), "full": decodedFixture(t, kind)} {
			before := obj.DeepCopyObject()
			readEverything(kind, obj, before.DeepCopyObject().(resource.Object))
			if diff := cmp.Diff(before, runtime.Object(obj)); diff != "" {
				t.Errorf("%s: a reading function changed the object:\n%s", name, diff)
			}
		}
	})
}

func readEverything(kind *resource.Any, obj, old resource.Object) {
	call(kind.ValidateUpdate, obj, old)
	call(kind.ValidateStatus, obj, old)
	if kind.Validate != nil {
		kind.Validate(obj)
	}
	if kind.Warnings != nil {
		kind.Warnings(obj)
	}
	if kind.Fields != nil {
		kind.Fields(obj)
	}
	if kind.Finalizing != nil {
		kind.Finalizing(obj)
	}
	for _, column := range kind.Columns {
		column.Cell(obj, kindstest.Now)
	}
}

func call[R any](do func(obj, old resource.Object) R, obj, old resource.Object) any {
	if do == nil {
		return nil
	}
	return do(obj, old)
}

func TestCellsHaveTheTypeOfTheirColumn(t *testing.T) {
	eachKind(t, func(t *testing.T, kind *resource.Any) {
		for _, column := range kind.Columns {
			switch cell := column.Cell(decodedFixture(t, kind), kindstest.Now).(type) {
			case string:
				if !slices.Contains([]string{"string", "date", "boolean"}, column.Type) {
					t.Errorf("column %s is %s, cell is a string", column.Name, column.Type)
				}
			case int64:
			case bool:
				if column.Type != "boolean" && column.Type != "string" {
					t.Errorf("column %s is %s, cell is a bool", column.Name, column.Type)
				}
			default:
				t.Errorf("column %s: cell is a %T", column.Name, cell)
			}
			if column.Description == "" {
				t.Errorf("column %s has no description", column.Name)
			}
		}
	})
}

func TestFieldLabels(t *testing.T) {
	eachKind(t, func(t *testing.T, kind *resource.Any) {
		for label := range selectableFields(kind) {
			got, value, err := scheme().ConvertFieldLabel(kind.GroupVersionKind, label, "x")
			if got != label || value != "x" || err != nil {
				t.Errorf("ConvertFieldLabel(%s) = %s, %s, %v", label, got, value, err)
			}
		}
		_, _, err := scheme().ConvertFieldLabel(kind.GroupVersionKind, "spec.nothing", "x")
		want := unsupportedLabel(kind.GroupVersionKind, "spec.nothing").Error()
		if kind.Fields == nil {
			want = `"spec.nothing" is not a known field selector: only "metadata.name", "metadata.namespace"`
		}
		if err == nil || err.Error() != want {
			t.Errorf("unknown label: %v", err)
		}
		if kind.Fields == nil {
			return
		}
		if diff := cmp.Diff(keys(kind.Fields(kind.New())), keys(kind.Fields(decodedFixture(t, kind)))); diff != "" {
			t.Error("objects yield different field names:\n", diff)
		}
	})
}

func keys(set map[string]string) map[string]bool {
	found := map[string]bool{}
	for key := range set {
		found[key] = true
	}
	return found
}

func TestScaleReadsWhatItWrites(t *testing.T) {
	eachKind(t, func(t *testing.T, kind *resource.Any) {
		if kind.Scale == nil {
			return
		}
		obj := kind.New()
		kind.Scale.SetReplicas(obj, 7)
		if got := kind.Scale.Replicas(obj); got != 7 {
			t.Errorf("replicas = %d, want 7", got)
		}
		selector := `{"matchLabels":{"b":"2","a":"1"}}`
		if kind.Plural == "replicationcontrollers" {
			selector = `{"b":"2","a":"1"}`
		}
		if err := json.Unmarshal([]byte(`{"spec":{"selector":`+selector+`},"status":{"replicas":3}}`), obj); err != nil {
			t.Fatal(err)
		}
		if got := kind.Scale.Selector(obj); got != "a=1,b=2" {
			t.Errorf("selector = %q", got)
		}
		if got := kind.Scale.StatusReplicas(obj); got != 3 {
			t.Errorf("status replicas = %d, want 3", got)
		}
	})
}

func TestStoredFormsConvertBothWays(t *testing.T) {
	eachKind(t, func(t *testing.T, kind *resource.Any) {
		if kind.ToStored == nil {
			return
		}
		obj := decodedFixture(t, kind)
		// The wire name is the codec's business, not the conversion's.
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		back := kind.FromStored(kind.ToStored(obj))
		if !equality.Semantic.DeepEqual(obj, back) {
			t.Error(cmp.Diff(obj, back))
		}
		if kind.StoredAs == (schema.GroupResource{}) {
			t.Error("StoredAs is missing")
		}
	})
}

// fixtureDirs are the folders of upstream's fixtures in the module cache.
var fixtureDirs = sync.OnceValues(func() ([]string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api", "k8s.io/apiextensions-apiserver").Output()
	modules := strings.Fields(string(out))
	if err != nil || len(modules) != 2 {
		return nil, fmt.Errorf("modules with fixtures: %q, %w", out, err)
	}
	return []string{filepath.Join(modules[0], "testdata", "HEAD"), filepath.Join(modules[1], "pkg", "apis", "testdata", "HEAD")}, nil
})

func fixture(t *testing.T, kind *resource.Any, format string) []byte {
	t.Helper()
	dirs, err := fixtureDirs()
	if err != nil {
		t.Fatal(err)
	}
	gvk := kind.GroupVersionKind
	group := gvk.Group
	if group == "" {
		group = "core"
	}
	for _, dir := range dirs {
		var data []byte
		data, err = os.ReadFile(filepath.Join(dir, strings.Join([]string{group, gvk.Version, gvk.Kind, format}, ".")))
		if err == nil {
			return data
		}
	}
	if made, found := madeFixtures[group]; found {
		return made(t, kind, format)
	}
	t.Fatal(err)
	return nil
}

// madeFixtures stand in for those of groups of which upstream publishes none.
var madeFixtures = map[string]func(t *testing.T, kind *resource.Any, format string) []byte{
	"apiregistration.k8s.io": randomFixture,
}

// randomFixture encodes an object with random content, the same for each format.
func randomFixture(t *testing.T, kind *resource.Any, format string) []byte {
	t.Helper()
	obj := kind.New()
	fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), serializer.NewCodecFactory(scheme())).Fill(obj)
	obj.GetObjectKind().SetGroupVersionKind(kind.GroupVersionKind)
	if format == "json" {
		data, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	var data bytes.Buffer
	if err := protobuf.NewSerializer(scheme(), scheme()).Encode(obj, &data); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

func decodedFixture(t *testing.T, kind *resource.Any) resource.Object {
	t.Helper()
	obj := kind.New()
	if err := json.Unmarshal(fixture(t, kind, "json"), obj); err != nil {
		t.Fatal(err)
	}
	obj.GetObjectKind().SetGroupVersionKind(kind.GroupVersionKind)
	return obj
}
