package pagetest

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Table is the text between the marks of this name. A page without them ends the test.
func Table(t testing.TB, page, name string) string {
	t.Helper()
	_, table, _ := cut(t, page, name)
	return table
}

// Compare fails the test if the table of the page is another than want. With update it writes want there.
func Compare(t testing.TB, page, name, want string, update bool) {
	t.Helper()
	before, table, after := cut(t, page, name)
	if update {
		if err := os.WriteFile(page, []byte(before+want+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, table); diff != "" {
		t.Errorf("%s differs (-want +got); run this test with -update:\n%s", page, diff)
	}
}

// cut returns the page before the table, with its mark, the table, and the rest.
func cut(t testing.TB, page, name string) (before, table, after string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->"
	before, rest, begins := strings.Cut(string(text), begin)
	table, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s has no table between %q and %q", page, strings.TrimSpace(begin), end)
	}
	return before + begin, table, end + after
}
