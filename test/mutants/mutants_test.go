package mutants

import (
	"testing"
)

// moduleRoot is where this package lies below the module.
const moduleRoot = "../.."

// TestEveryMutantFitsTheSource: a list that no longer fits would catch nothing and
// look as if it did.
func TestEveryMutantFitsTheSource(t *testing.T) {
	names := map[string]bool{}
	for _, m := range All() {
		fits(t, names, m.Name, m.Bug, m.changes())
		if len(m.Checks) == 0 {
			t.Errorf("mutant %s has no check", m.Name)
		}
	}
	for _, w := range Walls() {
		fits(t, names, w.Name, w.Bug, w.Changes)
	}
}

func fits(t *testing.T, names map[string]bool, name, bug string, changes []Change) {
	t.Helper()
	if _, err := mutate(absoluteRoot(t), changes); err != nil {
		t.Errorf("mutant %s: %v", name, err)
	}
	if names[name] || bug == "" || len(changes) == 0 {
		t.Errorf("mutant %q: named twice, or without a bug or a change", name)
	}
	names[name] = true
}

// TestMutantsAreCaught runs two that are cheap; make mutants runs all.
func TestMutantsAreCaught(t *testing.T) {
	for _, name := range []string{"fence-ignored", "watch-repeats-an-event"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := named(t, name)
			v, err := m.try(t.Context(), absoluteRoot(t), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if v.CaughtBy == "" {
				t.Errorf("survived: %s", m.Bug)
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
		if got := Culprit([]byte(output)); got != want {
			t.Errorf("culprit of %q is %s, want %s", output, got, want)
		}
	}
}
