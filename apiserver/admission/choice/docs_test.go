package choice

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table of plugins into docs/compatibility.md")

const (
	page       = "../../../docs/compatibility.md"
	tableBegin = "<!-- admission: begin -->\n"
	tableEnd   = "<!-- admission: end -->\n"
)

// here says in one cell what becomes of a plugin.
func here(p Plugin) string {
	switch {
	case p.Missing != "":
		return "refused: " + p.Missing
	case p.Fixed != "":
		return "on; cannot be disabled: " + p.Fixed
	case p.Default == Idle:
		return "accepted; it has nothing to do"
	case p.Default == On:
		return "on"
	default:
		return "off; can be enabled"
	}
}

// TestPage: docs/compatibility.md says of each plugin what becomes of it.
func TestPage(t *testing.T) {
	var table strings.Builder
	table.WriteString("| plugin | here |\n|---|---|\n")
	for _, p := range All() {
		table.WriteString("| `" + p.Name + "` | " + here(p) + " |\n")
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begun := strings.Cut(string(text), tableBegin)
	got, tail, ended := strings.Cut(rest, tableEnd)
	if !begun || !ended {
		t.Fatalf("%s has no table of plugins", page)
	}
	if *update {
		if err := os.WriteFile(page, []byte(head+tableBegin+table.String()+tableEnd+tail), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(table.String(), got); diff != "" {
		t.Errorf("%s differs (-want +got); run this test with -update:\n%s", page, diff)
	}
}
