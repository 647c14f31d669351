package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestWhatIsPassedOn: the exit code, also that of a signal, and a line for each program that ran.
func TestWhatIsPassedOn(t *testing.T) {
	costs := filepath.Join(t.TempDir(), "costs")
	for script, want := range map[string]int{"exit 0": 0, "exit 3": 3, "kill -9 $$": 137} {
		if code, err := run([]string{"sh", "-c", script}, costs); code != want || err != nil {
			t.Errorf("%s: %d %v, want %d", script, code, err, want)
		}
	}
	if code, err := run([]string{filepath.Join(t.TempDir(), "missing")}, costs); code != notRun || err == nil {
		t.Errorf("what is not there: %d %v", code, err)
	}
	lines, err := os.ReadFile(costs)
	if err != nil || !regexp.MustCompile(`^(\d+\.\d \d+\.\d /.*/test/cost\n){3}$`).Match(lines) {
		t.Errorf("%v: %q", err, lines)
	}
}

// TestNoLineIsNoFailure: the tests' own verdict counts.
func TestNoLineIsNoFailure(t *testing.T) {
	for path, wantErr := range map[string]bool{"": false, filepath.Join(t.TempDir(), "missing", "costs"): true} {
		if code, err := run([]string{"true"}, path); code != 0 || (err != nil) != wantErr {
			t.Errorf("%q: %d %v", path, code, err)
		}
	}
}
