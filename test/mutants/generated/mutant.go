package main

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// sideRunes bounds each side of what a mutant changes, as it is printed.
const sideRunes = 90

// Mutant is one change of one file.
type Mutant struct {
	Package *Package
	File    *File
	place   place
	// Function is the function or method, Type.Method, or what is declared outside of functions.
	Function string
	// What is changed, in one line, unique in the function.
	What string
	// from and to are what of the file's text becomes now.
	from, to int
	now      string
}

// Text is the whole file with the change.
func (m *Mutant) Text() []byte {
	return slices.Concat(m.File.Text[:m.from], []byte(m.now), m.File.Text[m.to:])
}

// Key names the mutant as long as its function does not change much: lines move.
func (m *Mutant) Key() string { return m.Package.Name + "\t" + m.Function + "\t" + m.What }

// Place is file:line below the module.
func (m *Mutant) Place() string {
	return fmt.Sprintf("%s/%s:%d", m.Package.Name, filepath.Base(m.File.Path), m.place.line)
}

// String is its line in a list.
func (m *Mutant) String() string { return m.Place() + "\t" + m.Function + "\t" + m.What }

// Compiles is nil if the mutant's package compiles.
func (m *Mutant) Compiles() error { return m.Package.Compiles(m.File, m.Text()) }

// order sorts mutants by their places, and numbers those of one function that are described alike.
func order(all []*Mutant) {
	slices.SortStableFunc(all, func(a, b *Mutant) int {
		return cmp.Or(cmp.Compare(a.Package.Name, b.Package.Name), cmp.Compare(a.File.Path, b.File.Path), cmp.Compare(a.from, b.from))
	})
	seen := map[string]int{}
	for _, m := range all {
		key := m.Key()
		if seen[key]++; seen[key] > 1 {
			m.What += fmt.Sprintf(" (%d)", seen[key])
		}
	}
}

// clip makes one line of some code.
func clip(code []byte) string {
	line := []rune(strings.Join(strings.Fields(string(bytes.ToValidUTF8(code, nil))), " "))
	if len(line) > sideRunes {
		return string(line[:sideRunes-1]) + "…"
	}
	return string(line)
}
