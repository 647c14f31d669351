package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestDifferences: what each server chooses is none, nor is the order of mistakes; a value that differs is named by its path, once for all
// entries of a list.
func TestDifferences(t *testing.T) {
	for _, c := range []struct{ upstream, ours, want string }{
		{`{"metadata":{"uid":"1","name":"a"},"spec":{"nodePort":1}}`, `{"metadata":{"uid":"2","name":"a"},"spec":{"nodePort":2}}`, ""},
		{`{"metadata":{"generateName":"a-","name":"a-1"}}`, `{"metadata":{"generateName":"a-","name":"a-2"}}`, ""},
		{`{"message":"x, y","details":{"causes":[{"field":"x"},{"field":"y"}]}}`, `{"message":"y, x","details":{"causes":[{"field":"y"},{"field":"x"}]}}`, ""},
		{`{"spec":{"list":[{"a":1}]}}`, `{"spec":{"list":[{"a":2}]}}`, ".spec.list[].a: upstream 1, ours 2"},
		{`{"status":{"phase":"x"}}`, `{}`, ".status: upstream map[phase:x], ours <invalid reflect.Value>"},
	} {
		if got := strings.Join(differences(object(t, c.upstream), object(t, c.ours)), "; "); got != c.want {
			t.Errorf("%s and %s: %q, want %q", c.upstream, c.ours, got, c.want)
		}
	}
}

// TestReport: a difference that is not known fails it, one that is meant is counted with its reason, and warnings of what is refused are none.
func TestReport(t *testing.T) {
	ok := func(warnings ...string) answer { return answer{201, warnings, map[string]any{}} }
	r := newReport()
	r.compare("Ingress", "/a.yaml", [2]answer{ok(), ok(`299 - "IngressClass \"x\" does not exist: nobody serves this Ingress"`)})
	r.compare("Pod", "/a.yaml", [2]answer{{422, nil, map[string]any{}}, {422, []string{"x"}, map[string]any{}}})
	var out bytes.Buffer
	if err := r.print(bufio.NewWriter(&out)); err != nil || !strings.Contains(out.String(), "known, 1: nobody would serve that Ingress") {
		t.Errorf("%v\n%s", err, out.String())
	}
	r.compare("Pod", "/b.yaml", [2]answer{ok("y"), ok()})
	r.compare("Pod", "/c.yaml", [2]answer{ok(), {409, nil, map[string]any{"message": "there"}}})
	out.Reset()
	err := r.print(bufio.NewWriter(&out))
	for _, want := range []string{"1 × Pod: only upstream warns\n   /b.yaml", "1 × Pod: 201 upstream, 409 ours\n   /c.yaml"} {
		if err == nil || !strings.Contains(out.String(), want) {
			t.Errorf("%v, no %q in\n%s", err, want, out.String())
		}
	}
}

// TestRead: the objects of files and of Lists, each once; templates and what is no object are passed over.
func TestRead(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "apiVersion: v1\nkind: A\n---\nhello: there\n---\napiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: B}, {apiVersion: v1, kind: A}]\n",
		"b.yaml": "apiVersion: v1\nkind: {{ .Kind }}\n", "c.txt": "apiVersion: v1\nkind: C\n", "d.json": `{"apiVersion":"v1","kind":"D"}`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var kinds []string
	for _, d := range read(folder) {
		kinds = append(kinds, d.object.GetKind())
	}
	if got := strings.Join(kinds, " "); got != "A B D" {
		t.Errorf("%q", got)
	}
}
