package apiserver

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/kinds/kindstest"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// oddValues stand for a field in turn: what its type, its validation and those who
// look at it before validation do must not expect.
var oddValues = []string{
	`null`, `true`, `-1`, `0`, `1.5`, `9223372036854775807`, `9223372036854775808`, `1e999`, `""`, `"x"`, `"\u0000"`, `".."`,
	`"` + strings.Repeat("x", 300) + `"`, `[]`, `{}`, `[null]`, `[""]`, `[{}]`, `{"":null}`, `{"x":null}`, `{"x":{}}`,
}

// oddFieldsStep: each how many-th of the about 180,000 trials is made. ODD_FIELDS=1 makes all.
const oddFieldsStep = 31

// TestOddFields: each field of valid objects of each kind takes each of oddValues, on
// its way through create, update, every patch and apply. What is refused is refused
// with a whole Status; what is accepted goes through admission and encoding.
func TestOddFields(t *testing.T) {
	step, err := strconv.Atoi(orDefault(os.Getenv("ODD_FIELDS"), strconv.Itoa(oddFieldsStep)))
	if err != nil {
		t.Fatal(err)
	}
	server, _ := newServer(t)
	trials := 0
	for _, kind := range kinds.All() {
		files, err := filepath.Glob(filepath.Join("kinds", "*", "testdata", kindstest.Folder(kind), "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for i, file := range files {
			obj := acceptable(t, file)
			if obj == nil {
				continue
			}
			obj.SetGroupVersionKind(kind.GroupVersionKind)
			obj.SetNamespace("")
			obj.SetName(fmt.Sprintf("%s%d", obj.GetName(), i))
			for trial := range oddCalls(t, server, kind, obj) {
				if trials++; trials%step == 0 {
					what, c := trial()
					checkAnswer(t, what, c.do(t, server))
				}
			}
		}
	}
	t.Logf("%d trials, each %d-th made", trials, step)
}

// odd is where an odd value is put before the object is text.
const odd = "@odd@"

// oddCalls make the calls that bring odd values into the fields of a valid object, which
// is created first. They store nothing.
func oddCalls(t *testing.T, server *Server, kind *resource.Any, obj *unstructured.Unstructured) iter.Seq[func() (string, call)] {
	t.Helper()
	const parameters = "?dryRun=All&fieldManager=m"
	path := collectionPath(kind, "default")
	ways := []string{"create"}
	if (call{method: http.MethodPost, path: path, body: text(t, obj.Object)}).do(t, server).code == http.StatusCreated {
		ways = []string{"create", "update", "json", "merge", "strategic", "apply"}
	}
	method := map[string]string{"create": http.MethodPost, "update": http.MethodPut}
	return func(yield func(func() (string, call)) bool) {
		for _, where := range fieldPaths(obj.Object, nil) {
			for _, value := range oddValues {
				for _, way := range ways {
					if !yield(func() (string, call) {
						c := call{method: orDefault(method[way], http.MethodPatch), path: path + "/" + obj.GetName() + parameters, contentType: patchTypeOf[way]}
						if way == "create" {
							c.path = path + parameters
						}
						c.body = strings.ReplaceAll(text(t, oddBody(way, obj, where)), `"`+odd+`"`, value)
						return fmt.Sprintf("%s of %s %s %s = %.20s", way, kind.GroupVersionKind.Kind, obj.GetName(), pointer(where), value), c
					}) {
						return
					}
				}
			}
		}
	}
}

// oddBody is what a way of writing takes to change the field.
func oddBody(way string, obj *unstructured.Unstructured, where []string) any {
	switch way {
	case "json":
		return []any{map[string]any{"op": "replace", "path": pointer(where), "value": odd}}
	case "merge", "strategic":
		return only(where, odd)
	}
	return replaced(obj.Object, where, odd)
}

func checkAnswer(t *testing.T, what string, got answer) {
	t.Helper()
	s := got.status
	switch {
	case got.code < http.StatusBadRequest:
	case got.code >= http.StatusInternalServerError:
		t.Errorf("%s: %d %s", what, got.code, firstBytes(got.body))
	case s.Status != metav1.StatusFailure || s.Reason == "" || s.Message == "" || int(s.Code) != got.code || s.Details == nil && got.code == http.StatusUnprocessableEntity:
		t.Errorf("%s: no whole Status: %d %s", what, got.code, firstBytes(got.body))
	}
}

func text(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fieldPaths are the ways to all fields below value, whole lists and maps included.
func fieldPaths(value any, before []string) (all [][]string) {
	each := func(key string, value any) {
		here := append(before[:len(before):len(before)], key)
		all = append(append(all, here), fieldPaths(value, here)...)
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			each(key, value[key])
		}
	case []any:
		for i, value := range value {
			each(strconv.Itoa(i), value)
		}
	}
	return all
}

// replaced is value with another at a path; it shares the rest.
func replaced(value any, path []string, by any) any {
	if len(path) == 0 {
		return by
	}
	switch value := value.(type) {
	case map[string]any:
		value = maps.Clone(value)
		value[path[0]] = replaced(value[path[0]], path[1:], by)
		return value
	case []any:
		value = slices.Clone(value)
		i, _ := strconv.Atoi(path[0])
		value[i] = replaced(value[i], path[1:], by)
		return value
	}
	return value
}

// only is nothing but the value at a path.
func only(path []string, value any) any {
	for _, key := range slices.Backward(path) {
		if _, err := strconv.Atoi(key); err == nil {
			value = []any{value}
		} else {
			value = map[string]any{key: value}
		}
	}
	return value
}

// pointer is a path as JSON patches write it.
func pointer(path []string) string {
	var out strings.Builder
	for _, key := range path {
		out.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key))
	}
	return out.String()
}
