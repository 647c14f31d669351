package main

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2/types"
)

var update = flag.Bool("update", false, "write RESULTS.md")

func cases(t *testing.T) []testCase {
	t.Helper()
	all, err := readCases(".")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTheListOfCases(t *testing.T) {
	perClass, seen := map[string]int{}, map[string]bool{}
	for _, c := range cases(t) {
		perClass[c.class]++
		if seen[c.name] || !strings.HasPrefix(c.name, "[sig-"+c.sig+"]") {
			t.Errorf("%q is listed twice or under the wrong sig %s", c.name, c.sig)
		}
		seen[c.name] = true
	}
	if want := map[string]int{"A": 119, "B": 96, "C": 113, "D": 134}; !reflect.DeepEqual(perClass, want) {
		t.Errorf("classes = %v, want %v", perClass, want)
	}
}

// TestTheFurtherCases are no part of conformance, and each is listed once.
func TestTheFurtherCases(t *testing.T) {
	all, err := readCases("further")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range all {
		if seen[c.name] || !strings.HasPrefix(c.name, "[sig-"+c.sig+"]") || strings.Contains(c.name, "[Conformance]") {
			t.Errorf("%q is listed twice, under the wrong sig %s, or a case of conformance", c.name, c.sig)
		}
		seen[c.name] = true
	}
}

func TestEveryRequiredCaseExists(t *testing.T) {
	for list, dir := range map[string]string{"passing.txt": ".", "short/cases.txt": ".", "further/passing.txt": "further"} {
		required, err := readNames(list)
		if err != nil || len(required) == 0 {
			t.Fatalf("%s: %d cases, %v", list, len(required), err)
		}
		all, err := readCases(dir)
		if err != nil {
			t.Fatal(err)
		}
		known := map[string]bool{}
		for _, c := range all {
			known[c.name] = true
		}
		for name := range required {
			if !known[name] {
				t.Errorf("%s names no case: %s", list, name)
			}
		}
	}
}

func TestTheFocusMatchesTheSelectionOnly(t *testing.T) {
	all := cases(t)
	selected := selectCases(all, []string{"A"}, regexp.MustCompile("Secrets|ConfigMap"), regexp.MustCompile("volume"))
	if len(selected) == 0 {
		t.Fatal("nothing is selected")
	}
	focus := regexp.MustCompile(focusOn(selected))
	for _, c := range all {
		if want := c.class == "A" && (strings.Contains(c.name, "Secrets") || strings.Contains(c.name, "ConfigMap")) && !strings.Contains(c.name, "volume"); focus.MatchString(c.name) != want {
			t.Errorf("%s: matched %v, want %v", c.name, !want, want)
		}
	}
}

func report(states map[string]types.SpecState) []types.Report {
	r := types.Report{SpecReports: types.SpecReports{{LeafNodeType: types.NodeTypeSynchronizedBeforeSuite, State: types.SpecStatePassed}}}
	for name, state := range states {
		r.SpecReports = append(r.SpecReports, types.SpecReport{
			ContainerHierarchyTexts: []string{"[sig-x]"}, LeafNodeType: types.NodeTypeIt, LeafNodeText: name, State: state,
			RunTime: time.Second, Failure: types.Failure{Message: "because\n  of this"},
		})
	}
	return []types.Report{r}
}

func TestOfAReportOnlyBegunCasesCount(t *testing.T) {
	got := resultsOf(report(map[string]types.SpecState{
		"good": types.SpecStatePassed, "bad": types.SpecStateFailed, "cut off": types.SpecStateInterrupted, "left out": types.SpecStateSkipped,
	}))
	var names []string
	for _, r := range got {
		names = append(names, r.name)
		if r.passed != (r.name == "[sig-x] good") || r.failure != "because of this" {
			t.Errorf("%+v", r)
		}
	}
	if want := []string{"[sig-x] bad", "[sig-x] cut off", "[sig-x] good"}; !reflect.DeepEqual(names, want) {
		t.Errorf("names = %v, want %v", names, want)
	}
}

func TestTheTableCountsEveryCaseOnce(t *testing.T) {
	all := []testCase{{"one", "A", "auth"}, {"two", "A", "auth"}, {"three", "B", "node"}}
	var out strings.Builder
	printTable(&out, all, []result{{name: "one", passed: true}, {name: "three"}})
	want := strings.Join([]string{
		"CLASS  SIG   PASSED  FAILED  NOT RUN",
		"A      all   1       0       1",
		"A      auth  1       0       1",
		"B      all   0       1       0",
		"B      node  0       1       0",
		"all    all   1       1       1", ""}, "\n")
	if out.String() != want {
		t.Errorf("table:\n%swant:\n%s", out.String(), want)
	}
}

func TestTheRatchet(t *testing.T) {
	required := map[string]bool{"kept": true, "broken": true, "not run": true}
	results := []result{{name: "kept", passed: true}, {name: "broken"}, {name: "new", passed: true}, {name: "never good"}}
	if got := brokenPromises(required, results); !reflect.DeepEqual(got, []string{"broken"}) {
		t.Errorf("broken = %v", got)
	}
	if got := leftOut(required, results); !reflect.DeepEqual(got, []string{"not run"}) {
		t.Errorf("left out = %v", got)
	}
	path := filepath.Join(t.TempDir(), "list")
	if err := writeNames(path, withPassed(required, results)); err != nil {
		t.Fatal(err)
	}
	got, err := readNames(path)
	if want := map[string]bool{"kept": true, "broken": true, "not run": true, "new": true}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("list = %v, %v; want %v", got, err, want)
	}
}

// TestResultsAreUpToDate: run `go test -run Results -update` after changing missing.tsv, here, in further or in test/csi.
func TestResultsAreUpToDate(t *testing.T) {
	for _, dir := range []string{".", "further", "../csi"} {
		passing, err := readNames(filepath.Join(dir, "passing.txt"))
		if err != nil {
			t.Fatal(err)
		}
		all, err := readCases(dir)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := writeResults(dir, all, passing); err != nil {
				t.Fatal(err)
			}
		}
		reasons, err := readReasons(dir)
		if err != nil {
			t.Fatal(err)
		}
		want, err := formatResults(all, passing, reasons)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, "RESULTS.md"))
		if err != nil || string(got) != string(want) {
			t.Errorf("%s/RESULTS.md is not what passing.txt and missing.tsv say (%v)", dir, err)
		}
	}
}

func TestEachMissingCaseNeedsOneReason(t *testing.T) {
	all := []testCase{{"one", "A", "auth"}, {"two", "D", "node"}}
	two := []reason{{regexp.MustCompile("two"), "no second"}}
	for name, c := range map[string]struct {
		passing map[string]bool
		reasons []reason
		ok      bool
	}{
		"explained":                     {map[string]bool{"one": true}, two, true},
		"not explained":                 {map[string]bool{"one": true}, nil, false},
		"explained for one that passes": {map[string]bool{"one": true, "two": true}, two, false},
	} {
		if _, err := explain(all, c.passing, c.reasons); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
