package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// toy has a mutant of each outcome.
var toy = map[string]string{
	"low/low.go": `package low

func Sum(a, b int) int { return a + b }

func Least(a, b int) int {
	if a < b {
		return a
	}
	return b
}

func Twice(n int) int { return n + n }

func Unused(n int) bool { return n == 7 }

func Count(n int) (done int) {
	for i := 0; i < n; i += 1 {
		done = i
	}
	return done
}

func Named(a int) bool {
	switch {
	case a == 5:
		return true
	}
	return false
}
`,
	"low/low_test.go": `package low

import "testing"

func TestLow(t *testing.T) {
	if Sum(2, 1) != 3 || Least(1, 2) != 1 || Least(2, 1) != 1 || Count(3) != 2 {
		t.Error("wrong")
	}
	Named(1)
}
`,
	"high/high.go":      "package high\n\nimport \"toy/low\"\n\nfunc Four() int { return low.Twice(2) }\n",
	"high/high_test.go": "package high\n\nimport \"testing\"\n\nfunc TestFour(t *testing.T) {\n\tif Four() != 4 {\n\t\tt.Error(Four())\n\t}\n}\n",
	"none/none.go":      "package none\n",
}

// TestOutcomes tries mutants of a small module.
func TestOutcomes(t *testing.T) {
	w, all := worldOf(t, module(t, toy), "./...")
	r := &report{out: t.Output()}
	if err := w.measure(t.Context(), all, r); err != nil {
		t.Fatal(err)
	}
	before := files(t, w.root)
	for what, want := range map[string]Verdict{
		"a + b → a - b":   {Outcome: Caught, By: "low.TestLow"},
		"a < b → a >= b":  {Outcome: Caught, By: "low.TestLow"},
		"a < b → a <= b":  {Outcome: Survived, By: " low"},
		"n + n → n - n":   {Outcome: Caught, By: "high.TestFour"},
		"n == 7 → n != 7": {Outcome: NotCovered},
		"a == 5 → a != 5": {Outcome: Survived, By: " low high"}, // nobody counts the conditions of cases
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			m := named(t, all, what)
			got, err := try(t.Context(), w.root, m, w.judgesOf(m), w.clean)
			if err != nil {
				t.Fatal(err)
			}
			if got.Outcome != want.Outcome || got.By != want.By {
				t.Errorf("%s by %q, want %s by %q", got.Outcome, got.By, want.Outcome, want.By)
			}
		})
	}
	t.Cleanup(func() {
		if after := files(t, w.root); after != before {
			t.Errorf("the tree has changed: %s", after)
		}
	})
}

// TestOneJudgeIsThePackageItself: what only its importers test is not covered then.
func TestOneJudgeIsThePackageItself(t *testing.T) {
	w, all := worldOf(t, module(t, toy), "./...")
	w.judgesMax = 1
	if err := w.measure(t.Context(), all, &report{out: t.Output()}); err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]int{"n + n → n - n": 0, "a + b → a - b": 1} {
		if got := w.judgesOf(named(t, all, what)); len(got) != want {
			t.Errorf("%s has %d judges, want %d", what, len(got), want)
		}
	}
}

// TestAMutantThatHangsIsCaughtByTime: whatever the machine does, it takes longer than a second.
func TestAMutantThatHangsIsCaughtByTime(t *testing.T) {
	w, all := worldOf(t, module(t, toy), "./...")
	m := named(t, all, "i += 1 → i -= 1")
	dir := t.TempDir()
	overlay, err := overlayOf(w.root, dir, m)
	if err != nil {
		t.Fatal(err)
	}
	outcome, test, err := runTests(t.Context(), w.root, dir, overlay, m.Package, time.Second)
	if outcome != CaughtHang || !strings.HasPrefix(test, "TestLow") || err != nil {
		t.Errorf("%s by %q (%v)", outcome, test, err)
	}
}

// TestAMutantThatDoesNotCompileIsNotCaught, by the types or by the compiler.
func TestAMutantThatDoesNotCompileIsNotCaught(t *testing.T) {
	w, all := worldOf(t, module(t, toy), "./...")
	m := *named(t, all, "a + b → a - b")
	m.now = "+ missing +"
	if v, err := try(t.Context(), w.root, &m, nil, nil); v.Outcome != NotBuilt || err != nil {
		t.Errorf("%+v (%v)", v, err)
	}
	dir := t.TempDir()
	overlay, err := overlayOf(w.root, dir, &m)
	if err != nil {
		t.Fatal(err)
	}
	if outcome, _, err := runTests(t.Context(), w.root, dir, overlay, m.Package, time.Minute); outcome != NotBuilt || err != nil {
		t.Errorf("%s (%v)", outcome, err)
	}
}

// TestTestsMustPassWithoutAMutant: else every mutant would be caught.
func TestTestsMustPassWithoutAMutant(t *testing.T) {
	w, all := worldOf(t, module(t, map[string]string{
		"a.go": "package a\n\nvar a = 1\n", "a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Error(a) }\n",
	}), ".")
	err := w.tryAll(t.Context(), all, &report{out: t.Output()})
	if err == nil || !strings.Contains(err.Error(), "does not pass without a mutant") {
		t.Errorf("%v", err)
	}
}

// TestTheReport has a line for each mutant, the sums, and a table.
func TestTheReport(t *testing.T) {
	var out bytes.Buffer
	r := &report{out: &out, path: filepath.Join(t.TempDir(), "table")}
	m := some(1)[0]
	m.File, m.place = &File{Path: "/x/a.go"}, place{7, 1}
	for _, o := range []Outcome{Caught, CaughtHang, Survived, NotCovered, NotBuilt, Equivalent} {
		r.add(m, Verdict{Outcome: o, By: "p.TestA", Took: time.Second})
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"p/a.go:7 f: 0 [p.TestA]", "2 of 4 caught: 50.0 %"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
	table, err := os.ReadFile(r.path)
	if err != nil || bytes.Count(table, []byte("\n")) != 7 {
		t.Errorf("%s (%v)", table, err)
	}
}

func TestListOfASample(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), options{root: "../../..", focus: "raftstore/replica/logtrim", seed: 1, n: 3, list: true}, &out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, "\n") != 4 || strings.Count(got, "raftstore/replica/logtrim/") != 3 {
		t.Error(got)
	}
	err := run(t.Context(), options{root: "../../..", focus: "server", list: true}, &out)
	if err == nil || !strings.Contains(err.Error(), "name a package below raftstore") {
		t.Errorf("%v", err)
	}
}

// files are the names and texts below a folder, one after the other.
func files(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all.WriteString(path + "\n" + string(text))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all.String()
}
