package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/onsi/ginkgo/v2/types"
)

// failureTextMax bounds what is shown of one failure, in characters.
const failureTextMax = 300

// result is what became of one case.
type result struct {
	name    string
	passed  bool
	took    time.Duration
	failure string
}

// resultsOf takes the cases that were begun out of a report, by name. A case that was
// cut off has failed.
func resultsOf(reports []types.Report) []result {
	var results []result
	for _, report := range reports {
		for _, spec := range report.SpecReports {
			begun := spec.LeafNodeType == types.NodeTypeIt && !spec.State.Is(types.SpecStateSkipped|types.SpecStatePending|types.SpecStateInvalid)
			if !begun {
				continue
			}
			results = append(results, result{spec.FullText(), spec.State.Is(types.SpecStatePassed), spec.RunTime, firstLines(spec.Failure.Message)})
		}
	}
	slices.SortFunc(results, func(a, b result) int { return cmp.Compare(a.name, b.name) })
	return results
}

func firstLines(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > failureTextMax {
		text = text[:failureTextMax] + "…"
	}
	return text
}

// tally counts cases.
type tally struct{ passed, failed, notRun int }

func (t *tally) add(outcome *result) {
	switch {
	case outcome == nil:
		t.notRun++
	case outcome.passed:
		t.passed++
	default:
		t.failed++
	}
}

// printTable shows all cases of the suite, by sig and class.
func printTable(w io.Writer, all []testCase, results []result) {
	outcome := map[string]*result{}
	for i := range results {
		outcome[results[i].name] = &results[i]
	}
	rows := map[string]*tally{}
	for _, c := range all {
		for _, key := range []string{c.class + "\t" + c.sig, c.class + "\tall", "all\tall"} {
			if rows[key] == nil {
				rows[key] = &tally{}
			}
			rows[key].add(outcome[c.name])
		}
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "CLASS\tSIG\tPASSED\tFAILED\tNOT RUN")
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\n", key, rows[key].passed, rows[key].failed, rows[key].notRun)
	}
	table.Flush()
}

func printFailures(w io.Writer, results []result) {
	for _, r := range results {
		if !r.passed {
			fmt.Fprintf(w, "failed after %v: %s\n  %s\n", r.took.Round(time.Second/10), r.name, r.failure)
		}
	}
}
