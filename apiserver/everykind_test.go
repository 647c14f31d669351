package apiserver

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/kinds/kindstest"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// kindsLivedMin is how many kinds have a case that this test can use, at least.
const kindsLivedMin = 30

// TestEveryKindIsServed takes an object of each kind through its life: it is created,
// read back, written back unchanged (which must store nothing), listed as a table
// and deleted.
func TestEveryKindIsServed(t *testing.T) {
	server, _ := newServer(t)
	mustDo[corev1.Namespace](t, server, call{method: "POST", path: "/api/v1/namespaces", body: `{"metadata":{"name":"home"}}`})
	mustDo[corev1.ServiceAccount](t, server, call{method: "POST", path: "/api/v1/namespaces/home/serviceaccounts", body: `{"metadata":{"name":"default"}}`})
	lived := 0
	for _, kind := range kinds.All() {
		files, err := filepath.Glob(filepath.Join("kinds", "*", "testdata", kindstest.Folder(kind), "plain.yaml"))
		if err != nil || len(files) == 0 {
			continue // its cases have other names
		}
		if obj := acceptable(t, files[0]); obj != nil {
			lived++
			obj.SetGroupVersionKind(kind.GroupVersionKind)
			obj.SetNamespace("")
			if kind.Namespaced() {
				obj.SetNamespace("home")
			}
			t.Run(kind.GroupVersionResource().String(), func(t *testing.T) { live(t, server, kind, obj) })
		}
	}
	if lived < kindsLivedMin {
		t.Errorf("only %d kinds were tried", lived)
	}
}

// acceptable reads the object of a golden case that validation accepted, else nil.
func acceptable(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	golden, err := os.ReadFile(strings.TrimSuffix(file, ".yaml") + ".golden")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := bytes.Cut(golden, []byte("== errors\n"))
	if len(after) > 0 && !bytes.HasPrefix(after, []byte("== ")) {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n---\n")
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(first), &obj.Object); err != nil {
		t.Fatal(err)
	}
	obj.SetResourceVersion("")
	if obj.GetDeletionTimestamp() != nil {
		return nil
	}
	return obj
}

func live(t *testing.T, server *Server, kind *resource.Any, obj *unstructured.Unstructured) {
	t.Helper()
	path := collectionPath(kind, obj.GetNamespace())
	body := func(o *unstructured.Unstructured) string {
		text, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	made := mustDo[unstructured.Unstructured](t, server, call{method: "POST", path: path, body: body(obj)})
	if made.GroupVersionKind() != kind.GroupVersionKind || made.GetUID() == "" {
		t.Errorf("made %s with uid %q", made.GroupVersionKind(), made.GetUID())
	}
	read := mustDo[unstructured.Unstructured](t, server, call{path: path + "/" + obj.GetName()})
	written := mustDo[unstructured.Unstructured](t, server, call{method: "PUT", path: path + "/" + obj.GetName(), body: body(read)})
	if written.GetResourceVersion() != read.GetResourceVersion() {
		t.Errorf("written back unchanged, it changed:\n%s\n%s", body(read), body(written))
	}
	table := mustDo[metav1.Table](t, server, call{path: path, accept: "application/json;as=Table;v=v1;g=meta.k8s.io"})
	if len(table.Rows) == 0 || len(table.Rows[0].Cells) != len(kind.Columns) {
		t.Errorf("table of %d rows", len(table.Rows))
	}
	if got := (call{method: "DELETE", path: path + "/" + obj.GetName()}).do(t, server); got.code != 200 {
		t.Errorf("deletion: %d %s", got.code, got.body)
	}
}

// collectionPath is where objects of the kind are, in the namespace if they have one.
func collectionPath(kind *resource.Any, namespace string) string {
	path := "/apis/" + kind.GroupVersionKind.Group + "/" + kind.GroupVersionKind.Version
	if kind.GroupVersionKind.Group == "" {
		path = "/api/v1"
	}
	if kind.Namespaced() {
		path += "/namespaces/" + namespace
	}
	return path + "/" + kind.Plural
}
