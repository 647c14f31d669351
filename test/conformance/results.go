package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// resultsHeader begins RESULTS.md.
const resultsHeader = `# Results

Written by the tool (` + "`UPDATE=1`" + `) from cases.tsv, passing.txt and missing.tsv: do not edit.

`

// A reason tells why some cases do not pass.
type reason struct {
	cases *regexp.Regexp
	why   string
}

func readReasons(dir string) ([]reason, error) {
	text, err := os.ReadFile(filepath.Join(dir, "missing.tsv"))
	if err != nil {
		return nil, err
	}
	var reasons []reason
	for line := range strings.Lines(string(text)) {
		number := len(reasons) + 1
		pattern, why, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok {
			return nil, fmt.Errorf("missing.tsv:%d: want a regular expression and a reason", number)
		}
		cases, err := regexp.Compile(pattern)
		if err != nil {
			return nil, fmt.Errorf("missing.tsv:%d: %w", number, err)
		}
		reasons = append(reasons, reason{cases, why})
	}
	return reasons, nil
}

// explain groups the cases that do not pass by their reason. Each needs one, and no
// reason may name a case that passes.
func explain(all []testCase, passing map[string]bool, reasons []reason) (map[string][]testCase, error) {
	missing := map[string][]testCase{}
	for _, c := range all {
		i := slices.IndexFunc(reasons, func(r reason) bool { return r.cases.MatchString(c.name) })
		switch {
		case passing[c.name] && i >= 0:
			return nil, fmt.Errorf("missing.tsv explains a case that passes: %s", c.name)
		case passing[c.name]:
		case i < 0:
			return nil, fmt.Errorf("missing.tsv does not explain: %s", c.name)
		default:
			missing[reasons[i].why] = append(missing[reasons[i].why], c)
		}
	}
	return missing, nil
}

// formatResults is the text of RESULTS.md.
func formatResults(all []testCase, passing map[string]bool, reasons []reason) ([]byte, error) {
	missing, err := explain(all, passing, reasons)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString(resultsHeader)
	writeCounts(&out, all, passing)
	if len(missing) > 0 {
		out.WriteString("\n## What does not pass, and why\n")
	}
	for _, why := range slices.Sorted(maps.Keys(missing)) {
		fmt.Fprintf(&out, "\n%s (%d):\n\n", why, len(missing[why]))
		for _, c := range missing[why] {
			fmt.Fprintf(&out, "- %s `%s`\n", c.class, c.name)
		}
	}
	return out.Bytes(), nil
}

// writeCounts writes "passing of all" for each sig and class.
func writeCounts(out io.Writer, all []testCase, passing map[string]bool) {
	classes := []string{"A", "B", "C", "D"}
	sum, good := map[string]int{}, map[string]int{}
	sigs := map[string]bool{}
	for _, c := range all {
		for _, key := range []string{c.sig + c.class, "all" + c.class} {
			sum[key]++
			if passing[c.name] {
				good[key]++
			}
		}
		sigs[c.sig] = true
	}
	fmt.Fprintf(out, "| sig | %s |\n|---|%s\n", strings.Join(classes, " | "), strings.Repeat("---|", len(classes)))
	for _, sig := range append([]string{"all"}, slices.Sorted(maps.Keys(sigs))...) {
		fmt.Fprintf(out, "| %s |", sig)
		for _, class := range classes {
			if n := sum[sig+class]; n > 0 {
				fmt.Fprintf(out, " %d of %d |", good[sig+class], n)
			} else {
				fmt.Fprint(out, " |")
			}
		}
		fmt.Fprintln(out)
	}
}

// writeResults brings RESULTS.md up to date with the list of cases that pass.
func writeResults(dir string, all []testCase, passing map[string]bool) error {
	reasons, err := readReasons(dir)
	if err != nil {
		return err
	}
	text, err := formatResults(all, passing, reasons)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "RESULTS.md"), text, 0o644)
}
