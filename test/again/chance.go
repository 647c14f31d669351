package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// readChance reads the tests of a table whose rows begin "| `package` | `test` |". It reads chanceFile in this folder or the nearest above:
// modules of their own lie below.
func readChance() ([]test, error) {
	text, err := os.ReadFile(above(chanceFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New(chanceFile + " is missing: tests that needed another run are written down there")
	}
	return parseChance(string(text)), err
}

func above(name string) string {
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, name)); missing == nil {
			return filepath.Join(dir, name)
		}
		dir = filepath.Dir(dir)
	}
	return name
}

func parseChance(text string) (tests []test) {
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		name := func(cell string) string { return strings.Trim(cell, " `") }
		tests = append(tests, test{name(cells[1]), name(cells[2])})
	}
	return tests
}

// known reports whether the test, one of its subtests, or the test that it belongs to has a line; of a package that ended early, any of its
// tests.
func known(lines []test, t test) bool {
	return slices.ContainsFunc(lines, func(l test) bool {
		return l.pkg == t.pkg && (t.name == "" || l.name == t.name || strings.HasPrefix(t.name, l.name+"/") || strings.HasPrefix(l.name, t.name+"/"))
	})
}
