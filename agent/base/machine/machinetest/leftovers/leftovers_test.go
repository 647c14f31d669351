package leftovers

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatIsNewIsLeft(t *testing.T) {
	before := Things{"mounts": {"/": true, "/gone": true}, "links": {"lo": true}}
	now := Things{"mounts": {"/": true, "/b": true, "/a": true}, "links": {"lo": true}}
	want := map[string][]string{"mounts": {"/a", "/b"}, "links": {}}
	if diff := cmp.Diff(want, now.Since(before)); diff != "" {
		t.Error(diff)
	}
}

func TestFilesAndProcessesAreFound(t *testing.T) {
	scope := Scope{Folders: []string{t.TempDir()}, Programs: []string{"sleep 4321"}}
	before := scope.Look()
	file := filepath.Join(scope.Folders[0], "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sleeper := exec.Command("sleep", "4321")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = sleeper.Process.Kill(), sleeper.Wait() })
	left := scope.Look().Since(before)
	own := slices.DeleteFunc(left["processes"], func(p string) bool { return !strings.HasSuffix(p, " sleep 4321") }) // tests of other packages have some, too
	if !slices.Equal(left["files"], []string{file}) || len(own) != 1 {
		t.Errorf("left: %q", left)
	}
}
