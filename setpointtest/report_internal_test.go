package setpointtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestNoArtifactDir: GinkgoTB of older versions of Ginkgo has only the methods of the testing package that it knows.
func TestNoArtifactDir(t *testing.T) {
	if dir := artifactDir(struct{ testing.TB }{}); dir != "" {
		t.Error(dir)
	}
}

// broken is a test whose folder panics for a reason of its own.
type broken struct{ testing.TB }

var errOwn = errors.New("of its own")

func (broken) ArtifactDir() string { panic(errOwn) }

// TestBrokenArtifactDir: a panic that has another reason is not taken for an old version.
func TestBrokenArtifactDir(t *testing.T) {
	defer func() {
		if said := recover(); said != errOwn {
			t.Error(said)
		}
	}()
	t.Error(artifactDir(broken{}))
}

// told is a test that keeps what is logged.
type told struct {
	testing.TB
	lines []string
}

func (t *told) Logf(format string, args ...any) {
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
}

// TestKeptFiles: a file is named if it was written, and the reason if it was not.
func TestKeptFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept")
	missing := filepath.Join(path, "below a file")
	for _, test := range []struct {
		path, says string
		err        error
	}{
		{path, "setpointtest: all objects are in " + path, nil},
		{path, "setpointtest: all objects are not kept: of its own", errOwn},
		{missing, "setpointtest: all objects are not kept: open " + missing + ": not a directory", nil},
	} {
		said := &told{TB: t}
		keepFile(said, "all objects", test.path, "a", test.err)
		if len(said.lines) != 1 || said.lines[0] != test.says {
			t.Errorf("said %q, want %q", said.lines, test.says)
		}
	}
	if text, err := os.ReadFile(path); string(text) != "a" {
		t.Error(string(text), err)
	}
}
