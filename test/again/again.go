package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// again decides what a run comes to.
type again struct {
	out   io.Writer
	known []test // from chanceFile
	// test is go test with the call's flags and these behind them.
	test func(out io.Writer, more []string, packages ...string) (outcome, error)
}

// run is false if something failed that is not chance. The tests are those that needed another run.
func (a again) run(packages []string) (needed []test, ok bool) {
	first, err := a.test(a.out, nil, packages...)
	if err != nil {
		fmt.Fprintln(a.out, "again:", err)
		return nil, false
	}
	if first.ok() {
		return nil, true
	}
	if len(first.failed) == 0 || len(first.failed) > failuresMax {
		fmt.Fprintf(a.out, "again: %d tests failed (%s): nothing is run again\n", len(first.failed), first.exit)
		return nil, false
	}
	ok = true
	for _, t := range first.failed {
		if why := a.why(t, first); why != "" {
			fmt.Fprintf(a.out, "again: FAIL %s: %s\n", t, why)
			ok = false
			continue
		}
		needed = append(needed, t)
		fmt.Fprintf(a.out, "again: ok   %s: needed another run, passed %d times alone\n", t, runsWanted)
	}
	return needed, ok
}

// why a failure is no chance; empty if it is.
func (a again) why(t test, first outcome) string {
	if why := first.hopeless[t]; why != "" {
		return why
	}
	if known(a.known, t) {
		return "it has a line in " + chanceFile + " already: mend it, and remove the line"
	}
	for n := range runsWanted {
		fmt.Fprintf(a.out, "again: %s: alone, run %d of %d\n", t, n+1, runsWanted)
		seen, err := a.test(a.out, []string{"-count=1", "-run", pattern(t.name)}, t.pkg)
		if err != nil {
			return err.Error()
		}
		if !seen.ok() {
			return fmt.Sprintf("it failed alone, in run %d", n+1)
		}
		if !seen.passed[t] {
			return "alone it is not run, or skipped"
		}
	}
	return ""
}

// pattern matches one test alone, and everything for a whole package.
func pattern(name string) string {
	if name == "" {
		return "."
	}
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = "^" + regexp.QuoteMeta(parts[i]) + "$"
	}
	return strings.Join(parts, "/")
}
