package judges

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestCourt: testdata/mutants.txt has statuses that mislead somebody, with the finding, and others beside them that mislead nobody. What
// is deleted begins with "gone".
func TestCourt(t *testing.T) {
	found := map[string]bool{}
	for name, text := range mutants(t) {
		want, docs, _ := strings.Cut(text, "\n")
		want = strings.TrimSpace(strings.TrimPrefix(want, "#"))
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			court := NewCourt()
			for doc := range strings.SplitSeq(docs, "\n---\n") {
				doc, gone := strings.CutPrefix(doc, "gone ")
				court.See(read(t, doc), gone)
			}
			all := strings.Join(court.Findings, "\n")
			if want == "" && all != "" || !strings.Contains(all, want) {
				t.Errorf("%q, want %q", all, want)
			}
			found[want] = true
		})
	}
	for _, rule := range Rules {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(found)), func(want string) bool { return strings.HasPrefix(want, rule.Name) }) {
			t.Errorf("the rule of %s is shown to find nothing", rule.Name)
		}
	}
}

func mutants(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/mutants.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, part := range strings.Split("\n"+string(text), "\n-- ")[1:] {
		name, docs, _ := strings.Cut(part, " --\n")
		all[name] = docs
	}
	return all
}
