package mutants

import (
	"testing"
)

// moduleRoot is where this package lies below the module.
const moduleRoot = "../.."

// TestEveryMutantFitsTheSource: a list that no longer fits would catch nothing and
// look as if it did.
func TestEveryMutantFitsTheSource(t *testing.T) {
	root := absoluteRoot(t)
	names := map[string]bool{}
	for _, m := range All() {
		if _, err := m.mutate(root); err != nil {
			t.Error(err)
		}
		if names[m.Name] || len(m.Checks) == 0 || m.Bug == "" {
			t.Errorf("mutant %q: named twice, or without a check or a bug", m.Name)
		}
		names[m.Name] = true
	}
}

// TestMutantsAreCaught runs two that are cheap; make mutants runs all.
func TestMutantsAreCaught(t *testing.T) {
	for _, name := range []string{"fence-ignored", "watch-repeats-an-event"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, err := named(t, name).try(t.Context(), absoluteRoot(t), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if v.CaughtBy == "" {
				t.Errorf("survived: %s", v.Mutant.Bug)
			}
		})
	}
}

func TestCulprit(t *testing.T) {
	for output, want := range map[string]string{
		"=== RUN   TestA\n    --- FAIL: TestA/sub (0.00s)\n--- FAIL: TestA (0.01s)\n":             "TestA",
		"panic: test timed out after 1m0s\n\trunning tests:\n\t\tTestB (1m0s)\n":                  "TestB (hung)",
		"=== RUN   TestC\n=== RUN   TestD\npanic: deadlock: all goroutines in bubble are blocked": "TestD (panic)",
	} {
		if got := culprit([]byte(output)); got != want {
			t.Errorf("culprit of %q is %s, want %s", output, got, want)
		}
	}
}
