package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is a line of go test -json: see go doc test2json, and go help buildjson for ImportPath.
type event struct {
	Action, Package, Test, ImportPath, Output string
}

// test is one that failed; without a name it is the whole package.
type test struct{ pkg, name string }

func (t test) String() string { return strings.TrimSpace(t.pkg + " " + t.name) }

// outcome is what one go test came to.
type outcome struct {
	// failed are the tests to run again: those that failed by themselves, not by a subtest.
	failed []test
	// hopeless says why another run cannot excuse a test or a package.
	hopeless map[test]string
	// passed are those that ran and passed; a package that has no test to run is none.
	passed map[test]bool
	// exit is how go test ended, empty if well.
	exit string
}

func (o outcome) ok() bool { return o.exit == "" && len(o.failed) == 0 }

// noTests ends the line of a package in which -run matches nothing.
const noTests = "[no tests to run]"

// packageRun is what is known of a package while it runs.
type packageRun struct {
	output map[string]*bytes.Buffer // of each test that has not ended; "" is the package's own
	failed map[string]bool
	racy   map[string]bool
	// whole: the package said at its end that tests failed, so all of them were run.
	whole bool
}

// read follows go test and prints, as it does without -json, a line for each package and what failing tests said.
func read(events interface {
	ReadBytes(delim byte) ([]byte, error)
}, out io.Writer) (outcome, error) {
	seen := outcome{hopeless: map[test]string{}, passed: map[test]bool{}}
	packages := map[string]*packageRun{}
	for {
		line, err := events.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				_, _ = out.Write(line) // what go says besides
			} else {
				seen.take(e, packages, out)
			}
		}
		if errors.Is(err, io.EOF) {
			return seen, nil
		}
		if err != nil {
			return seen, err
		}
	}
}

func (o *outcome) take(e event, packages map[string]*packageRun, out io.Writer) {
	if e.Package == "" { // of the compiler
		fmt.Fprint(out, e.Output)
		return
	}
	p := packages[e.Package]
	if p == nil {
		p = &packageRun{output: map[string]*bytes.Buffer{}, failed: map[string]bool{}, racy: map[string]bool{}}
		packages[e.Package] = p
	}
	switch e.Action {
	case "output":
		p.say(e)
	case "pass", "skip", "fail":
		said := p.end(e, out)
		o.passed[test{e.Package, e.Test}] = e.Action == "pass" && !strings.Contains(said, noTests)
		if e.Test == "" {
			o.judge(e, p)
			delete(packages, e.Package)
		}
	}
}

func (p *packageRun) say(e event) {
	if p.output[e.Test] == nil {
		p.output[e.Test] = &bytes.Buffer{}
	}
	p.output[e.Test].WriteString(e.Output)
	if strings.Contains(e.Output, "WARNING: DATA RACE") {
		p.racy[e.Test] = true
	}
	if e.Test == "" && e.Output == "FAIL\n" {
		p.whole = true
	}
}

// end prints what go test prints then: of tests that failed all, of those that passed nothing, of packages their line. It returns
// what was said.
func (p *packageRun) end(e event, out io.Writer) (said string) {
	if b := p.output[e.Test]; b != nil {
		said = b.String()
	}
	delete(p.output, e.Test)
	if e.Action == "fail" && e.Test != "" {
		p.failed[e.Test] = true
	}
	switch {
	case e.Action == "fail":
		fmt.Fprint(out, said)
	case e.Test == "" && said != "":
		lines := strings.Split(strings.TrimRight(said, "\n"), "\n")
		fmt.Fprintln(out, lines[len(lines)-1])
	}
	return said
}

// judge says what to run again of a package that has ended.
func (o *outcome) judge(e event, p *packageRun) {
	if e.Action != "fail" {
		return
	}
	o.exit = "a package failed"
	names := leaves(slices.Sorted(maps.Keys(p.failed)))
	if len(names) == 0 || !p.whole {
		names = []string{""} // it ended before its last test, so nothing is known of the others
	}
	for _, name := range names {
		t := test{e.Package, name}
		o.failed = append(o.failed, t)
		if len(p.racy) > 0 {
			o.hopeless[t] = "a data race in this package is no chance"
		}
	}
}

// leaves are the names that are no beginning of another: a test fails with each of its subtests.
func leaves(sorted []string) []string {
	return slices.DeleteFunc(slices.Clone(sorted), func(name string) bool {
		return slices.ContainsFunc(sorted, func(other string) bool { return strings.HasPrefix(other, name+"/") })
	})
}
