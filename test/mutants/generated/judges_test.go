package main

import (
	"slices"
	"testing"
)

// TestJudges: the package itself, then its importers by their distance, then by their speed; without those that have no tests.
func TestJudges(t *testing.T) {
	a := &Package{Path: "a", HasTests: true}
	untested := &Package{Path: "untested", Imports: []string{"a"}}
	slow := &Package{Path: "slow", Imports: []string{"a"}, HasTests: true}
	quick := &Package{Path: "quick", Imports: []string{"a", "slow"}, HasTests: true}
	far := &Package{Path: "far", Imports: []string{"untested"}, HasTests: true}
	stranger := &Package{Path: "stranger", HasTests: true}
	seconds := map[*Package]float64{slow: 9, quick: 3, far: 1}
	got := Judges(a, []*Package{far, stranger, slow, quick, untested, a}, func(p *Package) float64 { return seconds[p] })
	if want := []*Package{a, quick, slow, far}; !slices.Equal(got, want) {
		for _, p := range got {
			t.Log(p.Path)
		}
		t.Error("not a, quick, slow, far")
	}
}

func TestProfile(t *testing.T) {
	blocks, err := readProfile([]byte("mode: set\np/a.go:3.1,5.2 2 1\np/a.go:7.6,9.2 1 0\n"))
	if err != nil {
		t.Fatal(err)
	}
	clean := &Clean{blocks: blocks}
	m := &Mutant{Package: &Package{Path: "p"}, File: &File{Path: "/somewhere/a.go"}}
	for at, want := range map[place]bool{
		{1, 1}: true, {3, 1}: true, {5, 1}: true, {6, 1}: true, {7, 5}: true, {7, 6}: false, {8, 1}: false, {9, 1}: false, {9, 2}: true,
	} {
		m.place = at
		if got := clean.Runs(m); got != want {
			t.Errorf("%v runs: %v, want %v", at, got, want)
		}
	}
	if _, err := readProfile([]byte("p/a.go:3,5\n")); err == nil {
		t.Error("half a line is a profile")
	}
}

func TestSecondsIn(t *testing.T) {
	if got := secondsIn([]byte("PASS\ncoverage: 1%\nok  \ttoy/a\t1.25s\tcoverage: 1%\n")); got != 1.25 {
		t.Errorf("%g seconds", got)
	}
}
