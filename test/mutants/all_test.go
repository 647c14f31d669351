//go:build mutants

package mutants

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// caughtPercentMin is the least part of the mutants that must be caught.
const caughtPercentMin = 95

// TestEveryMutantIsCaught prints a row for each mutant as it goes.
func TestEveryMutantIsCaught(t *testing.T) {
	all := All()
	if name := os.Getenv("FOCUS"); name != "" {
		all = []Mutant{named(t, name)}
	}
	fmt.Printf("%-34s %-56s %7s\n", "mutant", "caught by", "seconds")
	caught := 0
	for _, m := range all {
		v, err := m.try(t.Context(), absoluteRoot(t), t.TempDir())
		if err != nil {
			t.Error(err)
			continue
		}
		by := v.CaughtBy
		if by == "" {
			by = "SURVIVED: " + m.Bug
		} else {
			caught++
		}
		fmt.Printf("%-34s %-56s %7.1f\n", m.Name, by, v.Took.Round(time.Second/10).Seconds())
	}
	fmt.Printf("%d of %d caught\n", caught, len(all))
	if caught*100 < len(all)*caughtPercentMin {
		t.Errorf("fewer than %d %% caught", caughtPercentMin)
	}
}
