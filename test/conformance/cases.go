package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A testCase is one case of the suite.
type testCase struct {
	name string
	// class is what it needs: A, B, C or D.
	class string
	sig   string
}

func readCases(dir string) ([]testCase, error) {
	text, err := os.ReadFile(filepath.Join(dir, "cases.tsv"))
	if err != nil {
		return nil, err
	}
	var cases []testCase
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		columns := strings.Split(line, "\t")
		if len(columns) != 3 {
			return nil, fmt.Errorf("cases.tsv:%d: want name, class and sig", i+1)
		}
		cases = append(cases, testCase{columns[0], columns[1], strings.TrimPrefix(columns[2], "sig-")})
	}
	return cases, nil
}

func selectCases(all []testCase, classes []string, focus, skip *regexp.Regexp) []testCase {
	var selected []testCase
	for _, c := range all {
		if slices.Contains(classes, c.class) && focus.MatchString(c.name) && !skip.MatchString(c.name) {
			selected = append(selected, c)
		}
	}
	return selected
}

func keepNames(cases []testCase, names map[string]bool) []testCase {
	return slices.DeleteFunc(cases, func(c testCase) bool { return !names[c.name] })
}

// focusOn is the regular expression that matches the names of cases and no other.
// Ginkgo puts the name of the suite in front.
func focusOn(cases []testCase) string {
	quoted := make([]string, len(cases))
	for i, c := range cases {
		quoted[i] = regexp.QuoteMeta(c.name)
	}
	return "(^| )(" + strings.Join(quoted, "|") + ")$"
}
