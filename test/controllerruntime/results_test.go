package controllerruntime

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

const (
	resultsFile = "RESULTS.md"
	head        = `# controller-runtime's own suites

Of controller-runtime v0.25.2, as ` + "`make envtest-suites UPDATE=1`" + ` saw them: the tests of ` + "`pkg/…`" + ` that want an API server. Nothing but the
import of envtest is changed, and that only in process.
`
)

// write puts a section into RESULTS.md and leaves the others.
func write(t *testing.T, how string, results map[string]outcome) {
	t.Helper()
	old, err := os.ReadFile(resultsFile)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	sections := map[string]string{how: section(how, results)}
	for _, text := range strings.Split(string(old), "\n## ")[1:] {
		if name, _, _ := strings.Cut(text, "\n"); name != how {
			sections[name] = "\n## " + strings.TrimRight(text, "\n") + "\n"
		}
	}
	text := head
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		text += sections[name]
	}
	put(t, resultsFile, text)
}

func section(how string, results map[string]outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\n| suite | passed | failed | skipped by itself | seconds |\n|---|---|---|---|---|\n", how)
	var all outcome
	for _, suite := range slices.Sorted(maps.Keys(results)) {
		r := results[suite]
		fmt.Fprintf(&b, "| `pkg/%s` | %d | %d | %d | %.0f |\n", suite, r.passed, r.failed, r.skipped, r.took.Seconds())
		all.passed, all.failed, all.skipped = all.passed+r.passed, all.failed+r.failed, all.skipped+r.skipped
		all.failures = append(all.failures, r.failures...)
	}
	fmt.Fprintf(&b, "| all | %d | %d | %d | |\n\n", all.passed, all.failed, all.skipped)
	for _, failure := range all.failures {
		fmt.Fprintf(&b, "- %s: %s\n", failure, cmp.Or(explained[failure], "not explained yet"))
	}
	return b.String()
}
