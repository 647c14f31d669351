package controllers

import (
	"encoding/json"
	"errors"
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

// askEach are, by package, the tests that ask for each controller.
var askEach = map[string]string{
	"controllers": "^(TestEveryControllerIsSwept|TestUpstreamsControllersAreAccountedFor)$",
	"server/why":  "^(TestEveryQueueHasItsKind|TestQueuesAreThoseOfLoops)$",
}

// TestANewControllerIsOneFolderAndOneLine applies the diff of the document that tells how to
// add a controller, and runs the tests on the result that ask for each controller.
func TestANewControllerIsOneFolderAndOneLine(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir, replace, folders := t.TempDir(), map[string]string{}, []string{}
	// The tests read sources, too: those of the tree where they run.
	tree := treeOf(t, root, "controllers", "server", "docs")
	for _, p := range diffIn(t, filepath.Join(root, "docs/internals/adding-a-controller.md")) {
		written, added := p.apply(t, root, dir)
		replace[filepath.Join(root, p.path)] = written
		copyFile(t, written, filepath.Join(tree, p.path))
		if p.path == "controllers/all.go" && added != 2 {
			t.Errorf("all.go grows by %d lines, want one and its import", added)
		}
		folders = append(folders, filepath.Dir(p.path))
	}
	if want := []string{"controllers/onlooker", "controllers", "controllers", "controllers", "server/why"}; !slices.Equal(folders, want) {
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
	for folder, tests := range askEach {
		program := filepath.Join(dir, filepath.Base(folder)+".test")
		runIn(t, root, "go", "test", "-c", "-vet=off", "-overlay", file, "-o", program, "./"+folder)
		runIn(t, filepath.Join(tree, folder), program, "-test.run", tests)
	}
}

// treeOf is a copy of some folders of the repository.
func treeOf(t *testing.T, root string, folders ...string) (tree string) {
	t.Helper()
	tree = t.TempDir()
	for _, folder := range folders {
		if err := os.CopyFS(filepath.Join(tree, folder), os.DirFS(filepath.Join(root, folder))); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, text, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func runIn(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = dir
	// As bin/setpoint is built. Tests with the race detector run with cgo, for which all that
	// imports net would be compiled once more.
	command.Env = append(command.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %v\n%s", command, err, out)
	}
}
