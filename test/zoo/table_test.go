package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// TestThePageIsOfTheResults: docs/software.md is what the command makes of results.json, and each row is of a recipe.
func TestThePageIsOfTheResults(t *testing.T) {
	rows, err := load(filepath.Join(root, resultsFile))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, pageFile))
	if err != nil || string(text) != page(rows) {
		t.Errorf("%s is not what test/zoo/results.json says (%v): run make zoo", pageFile, err)
	}
	for _, row := range rows {
		if !slices.ContainsFunc(recipes, func(r recipe) bool { return r.name == row.Name && r.version == row.Version }) {
			t.Errorf("results.json has %s %s, of which there is no recipe", row.Name, row.Version)
		}
	}
}

// TestRecipesArePinned: each says at which version, has a name of its own, and expects something.
func TestRecipesArePinned(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range recipes {
		if seen[r.name] || r.module == "" || !strings.HasPrefix(r.version, "v") || len(r.packages) == 0 || r.atLeast == 0 {
			t.Errorf("recipe %q lacks a name of its own, a module, a version, packages or what it expects", r.name)
		}
		seen[r.name] = true
	}
}

func TestMergeReplacesARow(t *testing.T) {
	file, page := filepath.Join(t.TempDir(), "results.json"), filepath.Join(t.TempDir(), "software.md")
	for _, rows := range [][]result{{{Name: "b", Specs: 1}, {Name: "a"}}, {{Name: "b", Specs: 2}}} {
		if err := merge(file, page, rows); err != nil {
			t.Fatal(err)
		}
	}
	all, err := load(file)
	if err != nil || len(all) != 2 || all[0].Name != "a" || all[1].Specs != 2 {
		t.Errorf("%+v, %v", all, err)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "| b |  | 2 |") {
		t.Errorf("%s, %v", text, err)
	}
}

// TestReasonsThatAreFoundLater: the row of the same version has them without another run.
func TestReasonsThatAreFoundLater(t *testing.T) {
	known := []recipe{{name: "a", version: "v2", reasons: map[string]string{"p: s": "chance"}}}
	for version, want := range map[string]string{"v2": "chance", "v1": "old"} {
		row := result{Name: "a", Version: version, Differences: []difference{{Spec: "p: s", Reason: "old"}}}
		if row.explain(known); row.Differences[0].Reason != want {
			t.Errorf("%s: %+v", version, row.Differences)
		}
	}
}

// TestARowOfOneSideReplacesNoneOfBoth: of the same version, if that one ran.
func TestARowOfOneSideReplacesNoneOfBoth(t *testing.T) {
	alone := result{Name: "a", Version: "v2", Alone: true}
	for name, c := range map[string]struct {
		old  result
		want bool
	}{
		"both":          {result{Name: "a", Version: "v2"}, true},
		"one side":      {result{Name: "a", Version: "v2", Alone: true}, false},
		"not run":       {result{Name: "a", Version: "v2", NotRun: "gone"}, false},
		"older version": {result{Name: "a", Version: "v1"}, false},
		"another suite": {result{Name: "b", Version: "v2"}, false},
	} {
		if got := alone.knowsLess(c.old); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestRows(t *testing.T) {
	ran := result{
		Name: "a", Version: "v1", Specs: 3, PassedUpstream: 2, PassedHere: 1, SecondsHere: 1, SecondsUpstream: 2,
		FailUpstream: []string{"x"}, Differences: []difference{{Spec: "y"}},
	}
	if got, want := tableRow(ran), "| a | v1 | 3 | 1 | 2 | 1.0 | 2.0 | 1, below; 1 fail upstream |\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	alone := result{Name: "c", Version: "v3", Specs: 2, PassedHere: 2, SecondsHere: 1, Alone: true}
	if got, want := tableRow(alone), "| c | v3 | 2 | 2 | not run | 1.0 | not run |  |\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	ofModule := result{Name: "d", Module: "example.com/d", Packages: []string{".", "test/x"}}
	if got, want := item(ofModule), "- **d**: `example.com/d`: `./.`, `./test/x`.\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	raised := result{Name: "e", Module: "example.com/e", Packages: []string{"x"}, Raised: recipe{raised: kubernetes137}.kubernetes()}
	if got, want := item(raised), "- **e**: `example.com/e`: `./x`. k8s.io's libraries v0.37.2.\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	absent := result{Name: "b", Version: "v2", NotRun: "gone|away"}
	if got, want := tableRow(absent), "| b | v2 | not run | | | | | gone\\|away |\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWhatCouldNotBeHadHasARow: until there is a result of that name.
func TestWhatCouldNotBeHadHasARow(t *testing.T) {
	name := notHad[0].Name
	row := "| " + name + " | " + notHad[0].Version + " | not run |"
	if text := page([]result{{Name: "a"}}); !strings.Contains(text, row) {
		t.Errorf("%s", text)
	}
	if text := page([]result{{Name: name, Specs: 3, PassedHere: 3}}); strings.Contains(text, row) {
		t.Errorf("%s", text)
	}
}
