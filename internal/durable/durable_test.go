package durable_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/setpoint-io/setpoint/internal/durable"
)

// TestAFileAppearsWhole, in the place of what had its name, and what stood where its part is written is not written to.
func TestAFileAppearsWhole(t *testing.T) {
	dir := t.TempDir()
	part, path, other := filepath.Join(dir, "part"), filepath.Join(dir, "a.backup"), filepath.Join(dir, "other")
	fill := func(text string, err error) func(*os.File) error {
		return func(file *os.File) error {
			_, failed := file.WriteString(text)
			return errors.Join(err, failed)
		}
	}
	expect := func(what, file, want string) {
		t.Helper()
		if text, err := os.ReadFile(file); err != nil || string(text) != want {
			t.Errorf("%s: %q %v, not %q", what, text, err, want)
		}
	}
	if err := errors.Join(os.WriteFile(other, []byte("other"), 0o600), os.Symlink(other, part)); err != nil {
		t.Fatal(err)
	}
	if err := durable.Replace(part, path, 0o600, fill("first", nil)); err != nil {
		t.Error(err)
	}
	expect("made", path, "first")
	expect("where a link led", other, "other")
	broken := errors.New("no leader")
	if err := durable.Replace(part, path, 0o600, fill("second", broken)); !errors.Is(err, broken) {
		t.Errorf("%v, not %v", err, broken)
	}
	expect("after a failure", path, "first")
	if _, err := os.Lstat(part); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a part is left: %v", err)
	}
	if err := durable.Replace(part, path, 0o600, fill("third", nil)); err != nil {
		t.Error(err)
	}
	expect("replaced", path, "third")
}
