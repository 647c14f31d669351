package images

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// FuzzArchive loads whatever lies in the folder of images: it may be refused, and
// nothing is written outside the store.
func FuzzArchive(f *testing.F) {
	dir := f.TempDir()
	for _, write := range []func(testing.TB, string, string, v1.Image){writeDocker, writeOCI} {
		path := filepath.Join(dir, "seed.tar")
		write(f, path, "a.b/c:1", imageOf(f, layerTar(f, entry{name: "run", content: "x"})))
		seed, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
		f.Add(bytes.ReplaceAll(seed, []byte("sha256:"), []byte("sha512:")))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		outer := t.TempDir()
		s, err := Open(Config{Dir: filepath.Join(outer, "store"), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(outer, "a.tar")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = s.LoadArchive(path)
		if entries, err := os.ReadDir(outer); err != nil || len(entries) != 2 {
			t.Errorf("outside of the store: %v %v", entries, err)
		}
	})
}
