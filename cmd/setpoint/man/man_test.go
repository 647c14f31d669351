package man

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// tree has the words that Markdown would take for more than text.
func tree() *cobra.Command {
	does := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "setpoint", Short: "A control plane", Version: "v1"}
	whatIf := &cobra.Command{Use: "what-if KIND/NAME", Short: "Say what happens to <NAME> or *all*", Run: does,
		Long: "Say what happens_ to <NAME> or *all*:\n  a table\n  of two lines\nand no more.", Example: "  setpoint what-if a_b  # *that*"}
	whatIf.Flags().String("data-dir", "", "`FOLDER` of <NAME>, a_b and c_d")
	whatIf.AddCommand(&cobra.Command{Use: "states", Short: "Both states", Run: does})
	root.AddCommand(whatIf, &cobra.Command{Use: "inner", Hidden: true, Run: does}, newMan())
	return root
}

func newMan() *cobra.Command {
	return New(func(cmd *cobra.Command) *cobra.Command { return cmd }, func(err error) error { return fmt.Errorf("mistake: %w", err) })
}

// pages runs the command in a new folder.
func pages(t *testing.T) map[string]string {
	t.Helper()
	folder := t.TempDir()
	root := tree()
	root.SetArgs([]string{"man", "--out", folder})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		found[entry.Name()] = string(text)
	}
	return found
}

// TestPages: one for each command that is not hidden; what a command says stands there as it is; twice they are the same.
func TestPages(t *testing.T) {
	found := pages(t)
	for _, name := range []string{"setpoint.1", "setpoint-what-if.1", "setpoint-what-if-states.1", "setpoint-man.1"} {
		if found[name] == "" {
			t.Errorf("no page %s", name)
		}
	}
	page := found["setpoint-what-if.1"]
	for _, want := range []string{
		`.TH "SETPOINT-WHAT-IF" "1" "" "setpoint v1" "Setpoint"`, "\nSay what happens_ to <NAME> or *all*:\n", "\n  a table\n  of two lines\n",
		"of <NAME>, a_b and c_d", "  setpoint what-if a_b  # *that*\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	if _, ok := found["setpoint-inner.1"]; ok {
		t.Error("a hidden command has a page")
	}
	if diff := cmp.Diff(found, pages(t)); diff != "" {
		t.Error(diff)
	}
}

// TestNoFolder: it is not made, and is named.
func TestNoFolder(t *testing.T) {
	for out, want := range map[string]string{
		"": "mistake: --out must name a folder", filepath.Join(t.TempDir(), "none"): "none/setpoint.1: no such file or directory",
	} {
		root := tree()
		root.SetArgs([]string{"man", "--out", out})
		root.SilenceErrors, root.SilenceUsage = true, true
		if err := root.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--out %q: %v, want %q", out, err, want)
		}
	}
}
