package mutants

import (
	"path/filepath"
	"testing"
)

func absoluteRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(moduleRoot)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func named(t *testing.T, name string) Mutant {
	t.Helper()
	for _, m := range All() {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("no mutant is named %s", name)
	return Mutant{}
}
