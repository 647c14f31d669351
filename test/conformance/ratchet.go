package main

import (
	"maps"
	"os"
	"slices"
	"strings"
)

// readNames reads a list of cases, one a line; # begins a comment.
func readNames(path string) (map[string]bool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			names[line] = true
		}
	}
	return names, nil
}

const listHeader = "# The cases that must pass: a run with UPDATE=1 adds to it.\n"

func writeNames(path string, names map[string]bool) error {
	lines := strings.Join(slices.Sorted(maps.Keys(names)), "\n")
	return os.WriteFile(path, []byte(listHeader+lines+"\n"), 0o644)
}

// brokenPromises are the cases that must pass and, having been run, did not.
func brokenPromises(required map[string]bool, results []result) []string {
	var broken []string
	for _, r := range results {
		if required[r.name] && !r.passed {
			broken = append(broken, r.name)
		}
	}
	return broken
}

// leftOut are the cases that must pass and were not run.
func leftOut(required map[string]bool, results []result) []string {
	left := maps.Clone(required)
	for _, r := range results {
		delete(left, r.name)
	}
	return slices.Sorted(maps.Keys(left))
}

// withPassed adds what passed. What failed stays: the list only grows.
func withPassed(required map[string]bool, results []result) map[string]bool {
	names := maps.Clone(required)
	for _, r := range results {
		if r.passed {
			names[r.name] = true
		}
	}
	return names
}
