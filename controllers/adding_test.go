package controllers

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// patched is one file of a diff: what its hunks replace, and by what.
type patched struct {
	path  string // from the root of the repository
	hunks [][2]string
}

// diffIn reads the first block of a text that is marked as a diff.
func diffIn(t *testing.T, file string) []patched {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begins := strings.Cut(string(text), "```diff\n")
	diff, _, ends := strings.Cut(rest, "```\n")
	if !begins || !ends {
		t.Fatalf("%s has no diff", file)
	}
	var files []patched
	for line := range strings.Lines(diff) {
		if path, ok := strings.CutPrefix(line, "+++ b/"); ok {
			files = append(files, patched{path: strings.TrimSpace(path)})
			continue
		}
		if strings.HasPrefix(line, "--- ") {
			continue
		}
		of := &files[len(files)-1]
		if strings.HasPrefix(line, "@@") {
			of.hunks = append(of.hunks, [2]string{})
			continue
		}
		hunk := &of.hunks[len(of.hunks)-1]
		if line[0] != '+' {
			hunk[0] += line[1:]
		}
		if line[0] != '-' {
			hunk[1] += line[1:]
		}
	}
	return files
}

// apply writes the file as it is after the diff to dir, and tells how many lines are new.
func (p patched) apply(t *testing.T, root, dir string) (written string, added int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, p.path))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	next := p.change(t, string(text))
	added = strings.Count(next, "\n") - strings.Count(string(text), "\n")
	written = filepath.Join(dir, strings.ReplaceAll(p.path, "/", "_"))
	if err := os.WriteFile(written, []byte(next), 0o600); err != nil {
		t.Fatal(err)
	}
	return written, added
}

// change is the text of the file after the diff.
func (p patched) change(t *testing.T, text string) string {
	t.Helper()
	for _, hunk := range p.hunks {
		if strings.Count(text, hunk[0]) != 1 && text != "" {
			t.Fatalf("%s is not as the diff says any more:\n%s", p.path, hunk[0])
		}
		text = strings.Replace(text, hunk[0], hunk[1], 1)
	}
	return text
}

// TestTheNextControllerFindsThePageAsTrue: the diff fits also after somebody has added a controller by it.
func TestTheNextControllerFindsThePageAsTrue(t *testing.T) {
	for _, p := range diffIn(t, "../docs/internals/adding-a-controller.md") {
		text, err := os.ReadFile(filepath.Join("..", p.path))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		first := strings.ReplaceAll(p.change(t, string(text)), "onlooker", "bystander")
		if next := p.change(t, first); strings.Count(next, "onlooker") == 0 {
			t.Errorf("%s: the second controller is not there", p.path)
		}
	}
}

// TestANewControllerIsOneFolderAndOneLine applies the diff of the document that tells how to
// add a controller, and runs the tests on the result that ask for each controller.
func TestANewControllerIsOneFolderAndOneLine(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir, replace, folders := t.TempDir(), map[string]string{}, []string{}
	for _, p := range diffIn(t, filepath.Join(root, "docs/internals/adding-a-controller.md")) {
		written, added := p.apply(t, root, dir)
		replace[filepath.Join(root, p.path)] = written
		if p.path == "controllers/all.go" && added != 2 {
			t.Errorf("all.go grows by %d lines, want one and its import", added)
		}
		folders = append(folders, filepath.Dir(p.path))
	}
	if want := []string{"controllers/onlooker", "controllers", "controllers", "controllers"}; !slices.Equal(folders, want) {
		t.Errorf("the diff changes %v, want %v", folders, want)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-overlay", file,
		"-run", "^(TestEveryControllerIsSwept|TestUpstreamsControllersAreAccountedFor)$", "./controllers", "./controllers/onlooker")
	build.Dir = root
	// As bin/setpoint is built. Tests with the race detector run with cgo, for which all that
	// imports net would be compiled once more.
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
