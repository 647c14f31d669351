package house

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A mutation is a file that breaks a rule in a way that the rule once let pass.
type mutation struct {
	path, source string
	caught       func(f *sourceFile) bool
}

// mutations are never written to the disk: each is parsed as if it stood at its path.
var mutations = map[string]mutation{
	"an import of a sibling below a row with dots": {
		"agent/base/wait/wait.go", "package wait\nimport \"" + module + "/agent/pods\"\nvar _ = pods.Config{}", leavesItsRoom},
	"an import of a part above": {
		"agent/volumes/watched/x.go", "package watched\nimport \"" + module + "/agent/volumes\"\nvar _ = volumes.Config{}", leavesItsRoom},
	"an import of what stands below, which the row does not name": {
		"agent/pods/x.go", "package pods\nimport \"" + module + "/agent/pods/staticpods\"\nvar _ = staticpods.Config{}", leavesItsRoom},
	"an import of a room above": {
		"agent/net/services/x.go", "package services\nimport \"" + module + "/agent/runtime/cri\"\nvar _ cri.Runtime", leavesItsRoom},
	"an import of another loop": {
		"controllers/job/x.go", "package job\nimport \"" + module + "/controllers/cronjob\"\nvar _ = cronjob.New()", leavesItsRoom},
	"a package that no row names": {
		"agent/novelty/x.go", "package novelty", func(f *sourceFile) bool { of, _ := roomOf(f.dir); return of == nil }},
	"the process's time under another name": {
		"server/x.go", "package server\nimport clk \"time\"\nvar _ = clk.Now()", func(f *sourceFile) bool { return len(processTimes(f)) == 1 }},
	"the API's time under another name": {
		"server/x.go", "package server\nimport v1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\nvar _ = v1.Now()",
		func(f *sourceFile) bool { return len(processTimes(f)) == 1 }},
	"the process's time without a name": {
		"server/x.go", "package server\nimport . \"time\"\nvar _ = Now()", hasDotImport},
	"the process's time as a value": {
		"server/x.go", "package server\nimport \"time\"\nvar now = time.Now", func(f *sourceFile) bool { return len(processTimes(f)) == 1 }},
	"a long function in a variable": {
		"server/x.go", "package server\nvar f = func() {" + strings.Repeat("\n", functionLinesMax) + "}", isLong},
	"a long function in a table of the package": {
		"server/x.go", "package server\nvar f = []func(){func() {" + strings.Repeat("\n", functionLinesMax) + "}}", isLong},
	"a sleep by a timer's channel": {
		"server/x_test.go", "package server\nimport \"time\"\nfunc f() { <-time.After(1) }", isAsleep},
	"a sleep by a timer": {
		"server/x_test.go", "package server\nimport \"time\"\nfunc f() { <-time.NewTimer(1).C }", isAsleep},
	"a sleep by a select of one case": {
		"server/x_test.go", "package server\nimport \"time\"\nfunc f() { select { case <-time.After(1): } }", isAsleep},
	"a sleep under another name": {
		"server/x_test.go", "package server\nimport clk \"time\"\nfunc f() { clk.Sleep(1) }", isAsleep},
	"a skip by a world": {
		"server/x_test.go", "package server\nfunc f(w world) { w.t.Skip(\"later\") }", isSkipped},
	"a skip by another receiver": {
		"server/x_test.go", "package server\nimport \"testing\"\nfunc f(tt *testing.T) { tt.SkipNow() }", isSkipped},
	"a skip by what a function returns": {
		"server/x_test.go", "package server\nfunc f() { test().Skipf(\"\") }", isSkipped},
	"a skip as a value": {
		"server/x_test.go", "package server\nimport \"testing\"\nfunc f(t *testing.T) { skip := t.Skip; skip() }", isSkipped},
	"a test behind a tag that nobody sets": {
		"server/x_test.go", "//go:build linux && later\n\npackage server", func(f *sourceFile) bool { return len(unknownTags(f)) == 1 }},
	"a list of callers": {
		"server/doc.go", "// Package server serves. Called by:\n// cmd/setpoint.\npackage server", listsCallers},
	"a list of callers in a sentence": {
		"server/doc.go", "// Package server serves.\n//\n// It is called\n// by cmd/setpoint and calls raftstore.\npackage server", listsCallers},
	"a caller that is none": {
		"server/doc.go", "// Package server serves. raftstore/state calls it when it must.\npackage server",
		func(f *sourceFile) bool { return len(falseCallers(f, []string{"cmd/setpoint"})) == 1 }},
	"a comment about a package that is not there": {
		"server/doc.go", "// Package server asks agent/{pods,novelty} what runs.\npackage server", namesWhatIsMissing},
	"a comment about a file that is not there": {
		"server/doc.go", "// Package server is read from server/novelty.go on.\npackage server", namesWhatIsMissing},
	"a variable that a function sets": {
		"server/x.go", "package server\nvar last = 1\nfunc f() { last = 2 }", hasGlobal},
	"a variable whose field a function sets": {
		"server/x.go", "package server\nvar last = thing{}\nfunc f() { last.at[1] = 2 }", hasGlobal},
	"a counter": {
		"server/x.go", "package server\nvar count = 0\nfunc f() { count++ }", hasGlobal},
	"a type with a method too many": {
		"server/x.go", "package server\ntype knot[K any] struct{}" + methods(methodsMax+1), isKnot},
	"a type with a field too many": {
		"server/x.go", "package server\ntype (knot struct { at int; " + fieldList(fieldsMax) + " })", isKnot},
	"a service that everybody may call": {
		"server/x.go", "package server\nvar all = []apiserver.Service{{Prefix: \"/x/\", Handler: h, Traffic: apiserver.Parts}}", isOpen},
	"a lock of the package": {
		"server/x.go", "package server\nimport \"sync\"\nvar mu sync.Mutex", hasGlobal},
}

// harmless are beside the mutations what the rules must let pass.
var harmless = map[string]mutation{
	"a patience beside an event": {
		"server/x_test.go", "package server\nimport \"time\"\nfunc f(c chan int) { select { case <-c: case <-time.After(1): } }", isAsleep},
	"a test for one system, and behind a tag that a command sets": {
		"server/x_test.go", "//go:build linux && !race\n\npackage server", func(f *sourceFile) bool { return len(unknownTags(f)) > 0 }},
	"a field called Skip": {"server/x_test.go", "package server\nfunc f() { _ = run.Skip }", isSkipped},
	"a function of the name Now": {
		"server/x.go", "package server\nimport \"" + module + "/internal/clusterclock\"\nvar _ = clusterclock.Now()", func(f *sourceFile) bool { return len(processTimes(f)) > 0 }},
	"a variable of a function with the name of the package's": {
		"server/x.go", "package server\nvar last = 1\nfunc f() { last := 1; last = 2 }", hasGlobal},
	"one goroutine calls it": {"server/doc.go", "// Package server serves. Apply and Restore are called by one goroutine.\npackage server", listsCallers},
	"an import of what is below": {
		"agent/x.go", "package agent\nimport \"" + module + "/agent/pods\"\nvar _ = pods.Config{}", leavesItsRoom},
	"a type as large as one may be": {
		"server/x.go", "package server\ntype knot[K any] struct{ " + fieldList(fieldsMax) + " }" + methods(methodsMax), isKnot},
	"a service that says who may call": {
		"server/x.go", "package server\nvar all = []apiserver.Service{{Prefix: \"/x/\", Handler: h, Allow: auth.IsServer}}", isOpen},
	"a caller that is one": {
		"server/doc.go", "// Package server serves. cmd/setpoint calls it.\npackage server",
		func(f *sourceFile) bool { return len(falseCallers(f, []string{"cmd/setpoint"})) > 0 }},
	"a path of another module": {"server/doc.go", "// Package server uses k8s.io/apiserver/pkg/novelty.\npackage server", namesWhatIsMissing},
}

// TestHouseMutationsAreCaught: the rules are no wishes either.
func TestHouseMutationsAreCaught(t *testing.T) {
	for name, m := range mutations {
		if !m.caught(parsed(t, m)) {
			t.Errorf("%s passes", name)
		}
	}
	for name, m := range harmless {
		if m.caught(parsed(t, m)) {
			t.Errorf("%s does not pass", name)
		}
	}
}

func parsed(t *testing.T, m mutation) *sourceFile {
	t.Helper()
	f, err := parseText(m.path, []byte(m.source))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func leavesItsRoom(f *sourceFile) bool {
	of, _ := roomOf(f.dir)
	return len(roomBreaches(f, of, map[string]bool{})) > 0
}

func isLong(f *sourceFile) bool             { return len(longFunctions(f, map[string]bool{})) > 0 }
func isAsleep(f *sourceFile) bool           { return len(sleeps(f)) > 0 }
func isOpen(f *sourceFile) bool             { return len(servicesForAll(f)) > 0 }
func isSkipped(f *sourceFile) bool          { return len(skips(f)) > 0 }
func namesWhatIsMissing(f *sourceFile) bool { return len(missingPackages(f)) > 0 }
func hasGlobal(f *sourceFile) bool          { return len(changing(f, variablesOf(f))) > 0 }

func isKnot(f *sourceFile) bool {
	types := map[string]*typeSize{}
	measureTypes(f, types)
	return len(largeTypes(types, map[string]bool{})) > 0
}

// methods are as many methods of knot.
func methods(count int) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, "\nfunc (k *knot[K]) m%d() {}", i)
	}
	return b.String()
}

// fieldList is as many fields, in one line.
func fieldList(count int) string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("f%d", i)
	}
	return strings.Join(names, ", ") + " int"
}

// TestHouseModulesOfTestsAreRead: they are seen by the rules that hold for them, and by no other.
func TestHouseModulesOfTestsAreRead(t *testing.T) {
	nested := map[string]int{}
	eachSourceOfAll(t, func(f *sourceFile) {
		for _, dir := range modulesOfTests {
			if f.nested && strings.HasPrefix(f.dir+"/", dir+"/") {
				nested[dir]++
			}
		}
	})
	for _, dir := range modulesOfTests {
		if nested[dir] == 0 {
			t.Errorf("no file of %s was read", dir)
		}
	}
	eachSource(t, func(f *sourceFile) {
		if slices.Contains(modulesOfTests, f.dir) {
			t.Errorf("%s is taken for the product's", f.path)
		}
	})
}

// TestHouseTextsThatNameNothing: the same for texts and for patterns.
func TestHouseTextsThatNameNothing(t *testing.T) {
	names := fileNames(t)
	for text, want := range map[string]int{
		"see `server/novelty`": 1, "see `novelty_test.go`": 1, "see `setpointtest/novelty.go`": 1, "see `findings/novelty`": 1,
		"see `rooms_test.go` and `server/doc.go`": 0, "```\n`novelty.go`\n```\n": 0,
	} {
		if got := missingFiles("X.md", text, names); len(got) != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	required, imported := map[string]string{"github.com/miekg/dns/v2": "v2.0.0"}, map[string]bool{"time": true}
	for pattern, want := range map[string]bool{
		"github.com/miekg/dns/...": true, "github.com/miekg/novelty/...": false, "time": true, "tiem": false, "...": true,
	} {
		if isImportable(pattern, required, imported) != want {
			t.Errorf("%s: not %v", pattern, want)
		}
	}
	if got, want := alternatives("a/{b,c}"), []string{"a/b", "a/c"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
