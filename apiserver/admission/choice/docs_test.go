package choice

import (
	"flag"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/internal/pagetest"
)

var update = flag.Bool("update", false, "write the table of plugins into docs/compatibility.md")

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
	pagetest.Compare(t, "../../../docs/compatibility.md", "admission", table.String(), *update)
}
