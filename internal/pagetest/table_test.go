package pagetest

import (
	"os"
	"path/filepath"
	"testing"
)

// recorded is a test whose end is only noted.
type recorded struct {
	testing.TB
	failed bool
}

func (r *recorded) Helper()               {}
func (r *recorded) Errorf(string, ...any) { r.failed = true }
func (r *recorded) Fatalf(string, ...any) { r.failed = true }

func TestCompare(t *testing.T) {
	const text = "a\n<!-- b: begin -->\none\n<!-- b: end -->\n<!-- c: begin -->\ntwo\n<!-- c: end -->\nd\n"
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		fails      bool
	}{{"b", "one\n", false}, {"c", "two\n", false}, {"b", "two\n", true}, {"d", "", true}} {
		r := &recorded{TB: t}
		if Compare(r, page, c.name, c.want, false); r.failed != c.fails {
			t.Errorf("%s, %q: failed: %v", c.name, c.want, r.failed)
		}
	}
	Compare(t, page, "c", "three\n", true)
	if got := Table(t, page, "c"); got != "three\n" {
		t.Errorf("%q", got)
	}
	Compare(t, page, "c", "two\n", true)
	if got, err := os.ReadFile(page); err != nil || string(got) != text {
		t.Errorf("%q, %v", got, err)
	}
}
