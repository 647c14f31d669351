package volumes

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReadFile reads plain files of the volume, and nothing else that a container may have put in their place.
func TestReadFile(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path  string
		make  func(volume string) error
		wrong string
	}{
		"a file": {"f", func(v string) error { return os.WriteFile(filepath.Join(v, "f"), []byte("text"), 0o600) }, ""},
		"a link to a file": {"l", func(v string) error {
			return errors.Join(os.WriteFile(filepath.Join(v, "f"), []byte("text"), 0o600), os.Symlink("f", filepath.Join(v, "l")))
		}, ""},
		"a link out of it":  {"l", func(v string) error { return os.Symlink(outside, filepath.Join(v, "l")) }, "invalid cross-device link"},
		"a path out of it":  {"../secret", func(string) error { return nil }, "leads out of the volume"},
		"a pipe":            {"p", func(v string) error { return unix.Mkfifo(filepath.Join(v, "p"), 0o600) }, "no plain file"},
		"a folder":          {"d", func(v string) error { return os.Mkdir(filepath.Join(v, "d"), 0o700) }, "no plain file"},
		"a file too large":  {"f", func(v string) error { return os.WriteFile(filepath.Join(v, "f"), []byte("longer text"), 0o600) }, "more than 4 bytes"},
		"nothing":           {"f", func(string) error { return nil }, fs.ErrNotExist.Error()},
		"nothing of a path": {"d/f", func(string) error { return nil }, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			volume := t.TempDir()
			if err := c.make(volume); err != nil {
				t.Fatal(err)
			}
			got, err := ReadFile(volume, c.path, 4)
			if c.wrong == "" {
				if err != nil || string(got) != "text" {
					t.Errorf("%q, %v", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.wrong) && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v, want %s", err, c.wrong)
			}
		})
	}
}
