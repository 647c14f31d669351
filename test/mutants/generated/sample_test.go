package main

import (
	"fmt"
	"slices"
	"testing"
)

func some(n int) (all []*Mutant) {
	p := &Package{Name: "p"}
	for i := range n {
		all = append(all, &Mutant{Package: p, Function: "f", What: fmt.Sprint(i)})
	}
	return all
}

func TestOneSeedIsOneSample(t *testing.T) {
	all := some(100)
	ten := Sample(all, 1, 10)
	reversed := slices.Clone(all)
	slices.Reverse(reversed)
	if again := Sample(reversed, 1, 10); !slices.Equal(ten, again) {
		t.Error("the same seed chose others")
	}
	if more := Sample(all, 1, 20); !slices.Equal(more[:10], ten) {
		t.Error("a larger sample does not begin with the smaller")
	}
	if others := Sample(all, 2, 10); slices.Equal(ten, others) {
		t.Error("another seed chose the same")
	}
	if got := Sample(all, 1, 1000); len(got) != len(all) {
		t.Errorf("%d of %d", len(got), len(all))
	}
}

// TestCodeElsewhereLeavesTheSample: what is new is chosen too or not, and nothing else changes.
func TestCodeElsewhereLeavesTheSample(t *testing.T) {
	before, after := Sample(some(100), 1, 10), Sample(some(101), 1, 10)
	kept := 0
	for _, m := range before {
		if slices.ContainsFunc(after, func(a *Mutant) bool { return a.What == m.What }) {
			kept++
		}
	}
	if kept < 9 {
		t.Errorf("%d of 10 are still chosen", kept)
	}
}

func TestOnlySome(t *testing.T) {
	all := some(12)
	for _, m := range all {
		m.File = &File{Path: "/x/a.go"}
	}
	if got, err := matching(slices.Clone(all), `f\t1`); len(got) != 3 || err != nil { // 1, 10 and 11
		t.Errorf("%q (%v)", got, err)
	}
	if got, err := matching(slices.Clone(all), ""); len(got) != 12 || err != nil {
		t.Errorf("%q (%v)", got, err)
	}
	if _, err := matching(all, "("); err == nil {
		t.Error("half an expression was taken")
	}
}

func TestFocus(t *testing.T) {
	all := []*Package{{Name: "a"}, {Name: "a/b"}, {Name: "ab"}}
	for path, want := range map[string]int{"": 3, "a": 2, "a/b": 1, "ab": 1, "b": 0} {
		if got := Focus(slices.Clone(all), path); len(got) != want {
			t.Errorf("%q keeps %d, want %d", path, len(got), want)
		}
	}
}
