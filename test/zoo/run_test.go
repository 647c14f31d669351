package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestOnlyWhatPassesUpstreamCounts: the counts and the differences of a suite that ran on both sides.
func TestOnlyWhatPassesUpstreamCounts(t *testing.T) {
	both := newPair()
	upstream := specs{"both": passed, "here not": passed, "known": passed, "there not": failed, "skips": skipped}
	here := specs{"both": passed, "known": failed, "there not": passed, "skips": passed, "only here": passed}
	both.upstream.add("p", outcome{specs: upstream, took: 2 * time.Second})
	both.here.add("p", outcome{specs: here, took: time.Second, why: "hangs", left: true})
	var row result
	both.fill(&row, recipe{reasons: map[string]string{"p: known": "because"}})
	if row.Specs != 4 || row.PassedUpstream != 3 || row.PassedHere != 1 || row.SecondsHere != 1 || row.SecondsUpstream != 2 {
		t.Errorf("%+v", row)
	}
	if !slices.Equal(row.FailUpstream, []string{"p: there not"}) || !slices.Equal(row.Stopped, []string{"p hangs"}) ||
		!slices.Equal(row.Left, []string{"p"}) {
		t.Errorf("%+v", row)
	}
	if !slices.Equal(row.Differences, []difference{{"p: here not", ""}, {"p: known", "because"}}) || row.fine() {
		t.Errorf("%+v", row.Differences)
	}
}

// TestWhatDidNotRunHasNoCounts: a suite that stopped on upstream's, or passes less there than its recipe expects.
func TestWhatDidNotRunHasNoCounts(t *testing.T) {
	stopped := newPair()
	stopped.upstream.add("p", outcome{specs: specs{"a": passed}, took: time.Second, why: "takes longer than 1s"})
	var row result
	stopped.fill(&row, recipe{})
	if row.Specs != 0 || row.NotRun != "on upstream's p takes longer than 1s" || row.fine() {
		t.Errorf("%+v", row)
	}
	few := newPair()
	few.upstream.add("p", outcome{specs: specs{"a": passed}, took: time.Second})
	row = result{}
	few.fill(&row, recipe{atLeast: 2})
	if row.NotRun == "" || row.fine() {
		t.Errorf("%+v", row)
	}
}

// TestOneSideAlone: what does not skip itself counts, and what fails needs a reason.
func TestOneSideAlone(t *testing.T) {
	here := newPair().here
	here.add("p", outcome{specs: specs{"good": passed, "bad": failed, "skips": skipped}, took: time.Second})
	var row result
	here.fillAlone(&row, recipe{atLeast: 2})
	if row.Specs != 2 || row.PassedHere != 1 || row.SecondsHere != 1 || row.fine() || row.NotRun != "" {
		t.Errorf("%+v", row)
	}
	row = result{}
	here.fillAlone(&row, recipe{atLeast: 3})
	if row.NotRun == "" {
		t.Errorf("%+v", row)
	}
	here.add("q", outcome{specs: specs{"good": passed}, took: time.Second, why: "takes longer than 1s"})
	row = result{}
	here.fillAlone(&row, recipe{})
	if row.NotRun != "here q takes longer than 1s" || row.Specs != 0 || row.fine() {
		t.Errorf("%+v", row)
	}
}

// TestWhatCannotBeFetchedHasOneLine: and knows that it asked for one side.
func TestWhatCannotBeFetchedHasOneLine(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOMODCACHE", t.TempDir())
	row := zoo{work: t.TempDir()}.run(t.Context(), recipe{name: "gone", module: "example.com/gone", version: "v1.0.0"})
	if !row.Alone || !strings.HasPrefix(row.NotRun, "cannot be fetched: ") {
		t.Errorf("%+v", row)
	}
}

// TestAModuleThatDoesNotCompile: the row says so in one line.
func TestAModuleThatDoesNotCompile(t *testing.T) {
	module := t.TempDir()
	write(t, filepath.Join(module, "go.mod"), "module example.com/broken\n\ngo 1.26\n")
	write(t, filepath.Join(module, "a_test.go"), "package a\n\nfunc TestA( {\n")
	err := compile(t.Context(), recipe{}, module, ".", filepath.Join(t.TempDir(), "program"))
	if err == nil || !strings.HasPrefix(err.Error(), "does not compile: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
	write(t, filepath.Join(module, "a_test.go"), "package a\n")
	if err := os.Rename(filepath.Join(module, "a_test.go"), filepath.Join(module, "a.go")); err != nil {
		t.Fatal(err)
	}
	if err := compile(t.Context(), recipe{}, module, ".", filepath.Join(t.TempDir(), "program")); err == nil || err.Error() != "has no tests" {
		t.Errorf("%v", err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestChoose(t *testing.T) {
	all := []recipe{{name: "a"}, {name: "b"}}
	if chosen, err := choose(all, "b"); err != nil || !slices.Equal(namesOf(chosen), []string{"b"}) {
		t.Errorf("%v, %v", chosen, err)
	}
	if _, err := choose(all, "b,c"); err == nil || err.Error() != `there is no suite "c"; there are a, b` {
		t.Error(err)
	}
}

// TestCheckNamesWhatIsMissing: before an hour is spent.
func TestCheckNamesWhatIsMissing(t *testing.T) {
	if err := command(context.Background(), []string{"-setpoint", t.TempDir()}, nil, nil); err == nil {
		t.Error("it runs without servers")
	}
}

// TestTagsChooseTests: tests behind a build tag compile where the recipe names it.
func TestTagsChooseTests(t *testing.T) {
	module := t.TempDir()
	write(t, filepath.Join(module, "go.mod"), "module example.com/tagged\n\ngo 1.26\n")
	write(t, filepath.Join(module, "a_test.go"), "//go:build integration\n\npackage a\n\nimport \"testing\"\n\nfunc TestA(*testing.T) {}\n")
	program := filepath.Join(t.TempDir(), "program")
	if err := compile(t.Context(), recipe{tags: "integration"}, module, ".", program); err != nil {
		t.Error(err)
	}
	if err := compile(t.Context(), recipe{}, module, ".", program+"-untagged"); err == nil {
		t.Error("tests behind a tag compile without it")
	}
}
