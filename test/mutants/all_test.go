//go:build mutants

package mutants

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// caughtPercentMin is the least part of the store's mutants that must be caught.
const caughtPercentMin = 95

// What FOCUS chooses beside names.
const (
	focusStore = "store"
	focusWalls = "walls"
)

// TestFocusIsKnown: of a name that nobody has nothing would be tried, and nothing would fail.
func TestFocusIsKnown(t *testing.T) {
	known := []string{"", focusStore, focusWalls}
	for _, m := range All() {
		known = append(known, m.Name)
	}
	for _, w := range Walls() {
		known = append(known, w.Name)
	}
	for name := range strings.SplitSeq(os.Getenv("FOCUS"), ",") {
		if !slices.Contains(known, name) {
			t.Errorf("FOCUS: there is no mutant %q", name)
		}
	}
}

// TestEveryMutantIsCaught prints a row for each mutant of the store as it goes.
func TestEveryMutantIsCaught(t *testing.T) {
	all := chosen(All(), focusStore, func(m Mutant) string { return m.Name })
	if len(all) == 0 {
		return // FOCUS names a wall
	}
	printTitle()
	caught := 0
	for _, m := range all {
		v, err := m.try(t.Context(), absoluteRoot(t), t.TempDir())
		if err != nil {
			t.Error(err)
			continue
		}
		v.print(m.Name, m.Bug)
		if v.CaughtBy != "" {
			caught++
		}
	}
	fmt.Printf("%d of %d caught\n", caught, len(all))
	if caught*100 < len(all)*caughtPercentMin {
		t.Errorf("fewer than %d %% caught", caughtPercentMin)
	}
}

// TestEveryWallIsAttacked takes one wall after the other away. No page may pass then. Meanwhile the next product is built.
func TestEveryWallIsAttacked(t *testing.T) {
	all := chosen(Walls(), focusWalls, func(w Wall) string { return w.Name })
	if len(all) == 0 {
		return // FOCUS names a mutant of the store
	}
	if os.Geteuid() != 0 {
		t.Skip("real containers need root")
	}
	tools, err := newTools(t.Context(), absoluteRoot(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	whole := t.TempDir()
	if err := tools.product(t.Context(), whole, nil); err != nil {
		t.Fatal(err)
	}
	if err := tools.passes(t.Context(), whole, pagesOf(all)); err != nil {
		t.Fatalf("with all walls: %v", err)
	}
	printTitle()
	for p := range products(t, tools, all) {
		v, err := Verdict{}, p.err
		if err == nil {
			v, err = p.wall.try(t.Context(), tools, p.dir)
		}
		if err = errors.Join(err, os.RemoveAll(p.dir)); err != nil {
			t.Errorf("wall %s: %v", p.wall.Name, err)
			continue
		}
		v.print(p.wall.Name, p.wall.Bug)
		if v.CaughtBy == "" {
			t.Errorf("wall %s: page %s does not miss it", p.wall.Name, p.wall.Page)
		}
	}
}

// product is a build without a wall.
type product struct {
	wall Wall
	dir  string
	err  error
}

// products are built one ahead.
func products(t *testing.T, tools tools, walls []Wall) <-chan product {
	built := make(chan product)
	go func() {
		defer close(built)
		for _, w := range walls {
			dir, err := os.MkdirTemp(tools.dir, w.Name)
			if err == nil {
				err = tools.product(t.Context(), dir, w.Changes)
			}
			built <- product{w, dir, err}
		}
	}()
	return built
}

func printTitle() { fmt.Printf("%-34s %-56s %7s\n", "mutant", "caught by", "seconds") }

func (v Verdict) print(name, bug string) {
	by := v.CaughtBy
	if by == "" {
		by = "SURVIVED: " + bug
	}
	fmt.Printf("%-34s %-56s %7.1f\n", name, strings.TrimSpace(by+" "+v.Why), v.Took.Round(time.Second/10).Seconds())
}

// chosen are those that FOCUS names: some by their names, all by that of their group; without FOCUS all.
func chosen[T any](all []T, group string, name func(T) string) []T {
	focus := os.Getenv("FOCUS")
	if focus == "" || focus == group {
		return all
	}
	names := strings.Split(focus, ",")
	return slices.DeleteFunc(all, func(one T) bool { return !slices.Contains(names, name(one)) })
}
