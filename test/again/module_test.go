package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unsteady is a module whose first test fails the first time, and whose second always.
const unsteady = `package unsteady

import ("os"; "testing")

func TestOnce(t *testing.T) {
	if _, err := os.Stat("seen"); err != nil {
		os.WriteFile("seen", nil, 0o600)
		t.Fatal("the first time")
	}
}

func TestAlways(t *testing.T) {
	if os.Getenv("ALWAYS") != "" {
		t.Fatal("each time")
	}
}
`

// TestRealTests runs go test itself.
func TestRealTests(t *testing.T) {
	for always, wantOK := range map[string]bool{"": true, "1": false} {
		t.Run("ALWAYS="+always, func(t *testing.T) {
			t.Chdir(t.TempDir())
			t.Setenv("ALWAYS", always)
			for name, text := range map[string]string{"go.mod": "module unsteady\n\ngo 1.26\n", "unsteady_test.go": unsteady} {
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out strings.Builder
			a := again{out: &out, test: func(out io.Writer, more []string, packages ...string) (outcome, error) {
				return follow(out, exec.Command("go", slices.Concat([]string{"test", "-json"}, more, packages)...))
			}}
			needed, ok := a.run([]string{"."})
			if len(needed) != 1 || needed[0] != (test{"unsteady", "TestOnce"}) || ok != wantOK {
				t.Errorf("needed %v, ok %v:\n%s", needed, ok, out.String())
			}
			if err := keep("list", needed); err != nil {
				t.Fatal(err)
			}
			if text, _ := os.ReadFile(filepath.Clean("list")); string(text) != "unsteady TestOnce\n" {
				t.Errorf("the list has %q", text)
			}
		})
	}
}
