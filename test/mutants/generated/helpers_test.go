package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module writes a module named toy, and returns its folder.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module toy\n\ngo 1.26\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// worldOf is a module with all its mutants.
func worldOf(t *testing.T, root string, patterns ...string) (*world, []*Mutant) {
	t.Helper()
	w, err := open(root, patterns, patterns)
	if err != nil {
		t.Fatal(err)
	}
	all, err := w.points("")
	if err != nil {
		t.Fatal(err)
	}
	return w, all
}

// store are the mutants of what the command changes.
func store(t *testing.T) []*Mutant {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	_, all := worldOf(t, root, changedPatterns()...)
	return all
}

func whats(all []*Mutant) (whats []string) {
	for _, m := range all {
		whats = append(whats, m.Function+": "+m.What)
	}
	return whats
}

func named(t *testing.T, all []*Mutant, what string) *Mutant {
	t.Helper()
	i := slices.IndexFunc(all, func(m *Mutant) bool { return strings.HasSuffix(m.What, what) })
	if i < 0 {
		t.Fatalf("no mutant is %q", what)
	}
	return all[i]
}
