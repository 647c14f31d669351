package kindstest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Now is the time at which tests look at objects.
var Now = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// Golden reads testdata/<plural>[.<group>]/<case>.yaml (with the version in between
// for a kind that another version stores under the same name): an object, then perhaps
// after --- the object it is updated to. The golden file beside it shows the
// table row, the object as created, and what validation and warnings say.
// Each kind has at least one case.
func Golden(t *testing.T, kinds []*resource.Any) {
	t.Helper()
	for _, kind := range kinds {
		t.Run(Folder(kind), func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join("testdata", Folder(kind), "*.yaml"))
			if err != nil || len(files) == 0 {
				t.Fatalf("no cases (%v)", err)
			}
			for _, file := range files {
				t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
					compare(t, strings.TrimSuffix(file, ".yaml")+".golden", describe(t, kind, file))
				})
			}
		})
	}
}

// Folder is where the cases of a kind stand: a further version of a kind has its own.
func Folder(kind *resource.Any) string {
	gvk := kind.GroupVersionKind
	if kind.ToStored != nil && kind.StorageResource() == kind.GroupResource() {
		return kind.Plural + "." + gvk.Version + "." + gvk.Group
	}
	return kind.GroupResource().String()
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func describe(t *testing.T, kind *resource.Any, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	created, updated, isUpdate := strings.Cut(string(text), "\n---\n")
	obj := Parse(t, kind, created)
	var out strings.Builder
	describeColumns(&out, kind, obj)
	describeCreate(t, &out, kind, Parse(t, kind, created))
	if isUpdate {
		describeUpdate(&out, kind, Parse(t, kind, updated), obj)
	}
	return out.String()
}

func describeColumns(out *strings.Builder, kind *resource.Any, obj resource.Object) {
	fmt.Fprintln(out, "== columns")
	for _, column := range kind.Columns {
		wide := ""
		if column.Priority > 0 {
			wide = " (wide)"
		}
		fmt.Fprintf(out, "%s%s: %v\n", strings.ToUpper(column.Name), wide, column.Cell(obj, Now))
	}
}

// describeCreate shows the object as it would be stored.
func describeCreate(t *testing.T, out *strings.Builder, kind *resource.Any, obj resource.Object) {
	t.Helper()
	if kind.PrepareCreate != nil {
		kind.PrepareCreate(obj)
	}
	requireStable(t, kind, obj)
	created, err := yaml.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(out, "== created\n%s", created)
	if kind.Validate != nil {
		describeErrors(out, "errors", kind.Validate(obj))
	}
	var warnings []string
	if kind.ChangeWarnings != nil {
		warnings = kind.ChangeWarnings(obj, nil)
	}
	if kind.Warnings != nil {
		warnings = append(warnings, kind.Warnings(obj)...)
	}
	if len(warnings) > 0 {
		fmt.Fprintln(out, "== warnings\n"+strings.Join(warnings, "\n"))
	}
}

// requireStable: what is read is what was stored. Reading decodes, and so fills in
// defaults, which must find nothing to fill.
func requireStable(t *testing.T, kind *resource.Any, stored resource.Object) {
	t.Helper()
	if kind.Default == nil || kind.CreateOnly {
		return
	}
	read := stored.DeepCopyObject().(resource.Object)
	kind.Default(read)
	if diff := cmp.Diff(stored, read); diff != "" {
		t.Errorf("%s: reading it changes it (-stored +read):\n%s", kind.GroupVersionKind.Kind, diff)
	}
}

func describeUpdate(out *strings.Builder, kind *resource.Any, obj, old resource.Object) {
	if kind.ValidateUpdate == nil {
		return
	}
	if kind.PrepareUpdate != nil {
		kind.PrepareUpdate(obj, old)
	}
	describeErrors(out, "update errors", kind.ValidateUpdate(obj, old))
}

// describeErrors sorts: the data of some kinds are maps.
func describeErrors(out *strings.Builder, title string, errs field.ErrorList) {
	fmt.Fprintf(out, "== %s\n", title)
	var lines []string
	for _, err := range errs {
		lines = append(lines, err.Error())
	}
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Fprintln(out, line)
	}
}

func Parse(t *testing.T, kind *resource.Any, text string) resource.Object {
	t.Helper()
	obj := kind.New()
	if err := yaml.UnmarshalStrict([]byte(text), obj); err != nil {
		t.Fatal(err)
	}
	if kind.Default != nil {
		kind.Default(obj)
	}
	return obj
}
