package mutants

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Mutant is one bug: a text of one file, replaced by another.
type Mutant struct {
	// Name is a few words with dashes, unique in All.
	Name string
	// Bug says in one line what is broken.
	Bug string
	// File is the path below the module. Old occurs in it exactly once.
	File, Old, New string
	// Checks are run in order, cheap ones first, until one fails.
	Checks []Check
}

// Check is some tests of one package.
type Check struct {
	// Package is the directory below the module, Run the pattern for go test -run.
	Package, Run string
}

// All returns every mutant.
func All() []Mutant {
	return slices.Concat(ofState, ofSnapshot, ofWatch, ofReplication, ofDisk, ofLives, ofPutBack, ofStorage, ofEncryption, ofOwnership,
		ofLoops)
}

// mutate returns the file's text with the bug in it.
func (m *Mutant) mutate(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(text), m.Old); n != 1 {
		return nil, fmt.Errorf("mutant %s: its text is %d times in %s, not once", m.Name, n, m.File)
	}
	mutated := []byte(strings.Replace(string(text), m.Old, m.New, 1))
	if _, err := parser.ParseFile(token.NewFileSet(), m.File, mutated, parser.SkipObjectResolution); err != nil {
		return nil, fmt.Errorf("mutant %s: %w", m.Name, err)
	}
	return mutated, nil
}

// overlay writes the mutated file and the list that go's -overlay reads into dir,
// and returns the path of the list.
func (m *Mutant) overlay(root, dir string) (string, error) {
	mutated, err := m.mutate(root)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, filepath.Base(m.File))
	if err := os.WriteFile(file, mutated, 0o600); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, m.File): file}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}
