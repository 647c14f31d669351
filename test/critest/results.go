package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	explainedFile = "explained.tsv"
	resultsFile   = "RESULTS.md"
)

var (
	errUnexplained = errors.New("cases failed that explained.tsv does not explain")
	errNoReport    = errors.New("the suite left no report")
)

// result is how one case ended: "passed", "failed" or "skipped". why is the suite's own word for it.
type result struct{ name, state, why string }

// report is what the suite writes, as far as it is wanted.
type report struct {
	Suites []struct {
		Cases []struct {
			Name    string   `xml:"name,attr"`
			Status  string   `xml:"status,attr"`
			Skipped *message `xml:"skipped"`
			Failure *message `xml:"failure"`
			Error   *message `xml:"error"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

type message struct {
	Text string `xml:"message,attr"`
}

// readReport leaves out what the focus left out, the benchmarks, and the nodes around the cases.
func readReport(dir string) ([]result, error) {
	files, err := filepath.Glob(filepath.Join(dir, "junit.xml"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(errNoReport, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		return nil, err
	}
	return parseReport(text)
}

func parseReport(text []byte) ([]result, error) {
	var read report
	if err := xml.Unmarshal(text, &read); err != nil {
		return nil, err
	}
	var results []result
	for _, suite := range read.Suites {
		for _, c := range suite.Cases {
			name, isCase := strings.CutPrefix(c.Name, "[It] ")
			switch {
			case c.Failure != nil || c.Error != nil:
				failure := c.Failure
				if failure == nil {
					failure = c.Error
				}
				results = append(results, result{c.Name, "failed", failure.Text})
			case !isCase || c.Skipped != nil && (c.Skipped.Text == "" || c.Skipped.Text == "skipped"):
			case c.Skipped != nil:
				results = append(results, result{c.Name, "skipped", strings.TrimPrefix(c.Skipped.Text, "skipped - ")})
			default:
				results = append(results, result{c.Name, "passed", ""})
			}
			if len(results) > 0 && isCase {
				last := &results[len(results)-1]
				if last.name == c.Name {
					last.name = name
				}
			}
		}
	}
	slices.SortFunc(results, func(a, b result) int { return strings.Compare(a.name, b.name) })
	return results, nil
}

// readExplained maps the names of cases to why the environment does not let them pass.
func readExplained() (map[string]string, error) {
	text, err := os.ReadFile(explainedFile)
	if err != nil {
		return nil, err
	}
	explained := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, why, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			return nil, fmt.Errorf("%s: %q: want a name, a tab and a reason", explainedFile, line)
		}
		explained[name] = why
	}
	return explained, nil
}

// judge prints the figures, and writes them down if that is wanted and all is well.
func (o *options) judge(results []result) error {
	explained, err := readExplained()
	if err != nil {
		return err
	}
	fmt.Println(summary(results))
	bad := false
	for _, r := range results {
		if r.state != "failed" {
			continue
		}
		why, known := explained[r.name]
		bad = bad || !known
		if !known {
			why = "NOT EXPLAINED: " + firstLine(r.why)
		}
		fmt.Printf("failed: %s\n\t%s\n", r.name, why)
	}
	if bad {
		return fmt.Errorf("%w: %s/critest.log", errUnexplained, o.dir)
	}
	if !o.update {
		return nil
	}
	return os.WriteFile(resultsFile, []byte(render(results, explained)), 0o644)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

func count(results []result, state string) (n int) {
	for _, r := range results {
		if r.state == state {
			n++
		}
	}
	return n
}

func summary(results []result) string {
	return fmt.Sprintf("%d of %d cases passed, %d failed, %d do not apply",
		count(results, "passed"), len(results), count(results, "failed"), count(results, "skipped"))
}

// render is RESULTS.md.
func render(results []result, explained map[string]string) string {
	var w strings.Builder
	fmt.Fprintf(&w, "# Results\n\nWritten by the tool (`make critest UPDATE=1`) and explained.tsv: do not edit.\n\n")
	fmt.Fprintf(&w, "critest of sigs.k8s.io/cri-tools v1.36.0 against `setpoint cri`: %s.\n", summary(results))
	for _, section := range []struct{ state, title string }{{"failed", "What fails, and why"}, {"skipped", "What the suite left out, in its own words"}} {
		if count(results, section.state) == 0 {
			continue
		}
		fmt.Fprintf(&w, "\n## %s\n\n", section.title)
		for _, r := range results {
			if r.state != section.state {
				continue
			}
			why := explained[r.name]
			if r.state == "skipped" {
				why = firstLine(r.why)
			}
			fmt.Fprintf(&w, "- `%s`: %s\n", r.name, why)
		}
	}
	fmt.Fprintf(&w, "\n## What passes\n\n")
	for _, r := range results {
		if r.state == "passed" {
			fmt.Fprintf(&w, "- `%s`\n", r.name)
		}
	}
	return w.String()
}
