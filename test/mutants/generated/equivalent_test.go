package main

import (
	"strings"
	"testing"
)

// TestEquivalentsAreThere: an entry that no mutant has any more excuses nothing.
func TestEquivalentsAreThere(t *testing.T) {
	reasons, err := equivalents(equivalentText)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range store(t) {
		delete(reasons, m.Key())
	}
	for key := range reasons {
		t.Errorf("equivalent.tsv: there is no such mutant any more; take the line out, or mend it: %q", key)
	}
}

func TestEquivalentsHaveReasons(t *testing.T) {
	if reasons, err := equivalents("# about\np\tf\ta → b\tbecause\n"); err != nil || reasons["p\tf\ta → b"] != "because" {
		t.Errorf("%v (%v)", reasons, err)
	}
	for _, text := range []string{"p\tf\ta → b\n", "p\tf\ta → b\t\n", strings.Repeat("p\tf", 2)} {
		if _, err := equivalents(text); err == nil {
			t.Errorf("%q is no entry", text)
		}
	}
	var many strings.Builder
	for i := range equivalentMax + 1 {
		many.WriteString("p\tf" + strings.Repeat("x", i) + "\ta\tb\n")
	}
	if _, err := equivalents(many.String()); err == nil {
		t.Error("the list has no end")
	}
}
