package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestSavedImagesAreImportedAsTheyWere compares layers by what a second packing of them gives.
func TestSavedImagesAreImportedAsTheyWere(t *testing.T) {
	s := openStore(t, t.TempDir(), "")
	base := layerTar(t, entry{name: "etc/passwd", content: "root"}, entry{name: "bin/su", content: "su", mode: 0o4755})
	first, err := s.add(imageOf(t, base, layerTar(t,
		entry{name: "etc/.wh.passwd"}, entry{name: "var/", kind: tar.TypeDir, mode: 0o1777}, entry{name: "var/.wh..wh..opq"},
		entry{name: "run/pipe", kind: tar.TypeFifo}, entry{name: "a", content: "twice"}, entry{name: "b", kind: tar.TypeLink, link: "a"})),
		Image{Tags: []string{"docker.io/library/x:1"}})
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.add(imageOf(t, base), Image{Tags: []string{"docker.io/library/y:1"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range first.Layers { // as if they had been unpacked long ago
		if err := os.Chtimes(filepath.Join(s.LayersDir(), layer), time.Unix(1e9, 0), time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
	}
	var saved, zipped bytes.Buffer
	if err := s.Save(t.Context(), &saved, "x:1", second.ID, "y:1"); err != nil {
		t.Fatal(err)
	}
	zipper := gzip.NewWriter(&zipped)
	if _, err := zipper.Write(saved.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := zipper.Close(); err != nil {
		t.Fatal(err)
	}
	for _, archive := range []*bytes.Buffer{&saved, &zipped} {
		other := openStore(t, t.TempDir(), "")
		loaded, err := other.Import(archive)
		if err != nil || len(loaded) != 2 {
			t.Fatalf("%d images: %v", len(loaded), err)
		}
		got, err := other.Get("x:1")
		if err != nil || !got.Kept() {
			t.Fatalf("%v %v", got, err)
		}
		if diff := cmp.Diff(first.Config, got.Config); diff != "" {
			t.Error(diff)
		}
		sameLayers(t, s, first, other, got)
	}
}

func sameLayers(t *testing.T, s *Store, before Image, other *Store, after Image) {
	t.Helper()
	for i := range before.Layers {
		want, got := packed(t, s, before.Layers[i]), packed(t, other, after.Layers[i])
		if !bytes.Equal(want, got) {
			t.Errorf("layer %d differs: %d and %d bytes", i, len(want), len(got))
		}
	}
	upper := filepath.Join(other.LayersDir(), after.Layers[1])
	var stat, link unix.Stat_t
	if err := unix.Lstat(filepath.Join(upper, "etc/passwd"), &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFCHR {
		t.Errorf("whiteout: %o %v", stat.Mode, err)
	}
	value := make([]byte, 1)
	if _, err := unix.Getxattr(filepath.Join(upper, "var"), opaqueAttribute, value); err != nil || value[0] != 'y' {
		t.Errorf("opaque directory: %q %v", value, err)
	}
	if err := errors.Join(unix.Lstat(filepath.Join(upper, "a"), &stat), unix.Lstat(filepath.Join(upper, "b"), &link)); err != nil || stat.Ino != link.Ino {
		t.Errorf("hard link: %d %d %v", stat.Ino, link.Ino, err)
	}
}

func packed(t *testing.T, s *Store, layer string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := pack(t.Context(), filepath.Join(s.LayersDir(), layer), &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestSaveNamesWhatIsMissingBeforeItWrites(t *testing.T) {
	s := openStore(t, t.TempDir(), "")
	var out bytes.Buffer
	if err := s.Save(t.Context(), &out, "nosuch:1"); !errors.Is(err, ErrNotFound) || out.Len() > 0 {
		t.Errorf("%v, %d bytes", err, out.Len())
	}
}

func TestImportLeavesNothingOfABrokenArchive(t *testing.T) {
	s := openStore(t, t.TempDir(), "")
	for _, content := range []string{"", "x", "not an archive", "\x1f\x8bnor gzip"} {
		if loaded, err := s.Import(bytes.NewReader([]byte(content))); err == nil {
			t.Errorf("%q: %v", content, loaded)
		}
	}
	if left, err := os.ReadDir(s.LayersDir()); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

func TestCollectKeepsWhatIsUsed(t *testing.T) {
	s := openStore(t, t.TempDir(), "")
	base, top := layerTar(t, entry{name: "base", content: "12345"}), layerTar(t, entry{name: "top", content: "123"})
	used, err := s.add(imageOf(t, base), Image{Tags: []string{"docker.io/library/used:1"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.add(imageOf(t, base, top), Image{Tags: []string{"docker.io/library/unused:1"}}); err != nil {
		t.Fatal(err)
	}
	tag := []string{"docker.io/library/archived:1"}
	if _, err := s.add(imageOf(t, top, base), Image{Tags: tag, Archived: tag}); err != nil {
		t.Fatal(err)
	}
	use := Use{Images: map[string]bool{}, Layers: map[string]bool{}}
	use.Add(used.ID, used.Layers, nil)
	collected, err := s.Collect(use)
	if err != nil || len(collected.Images) != 1 || collected.FreedBytes != 0 {
		t.Errorf("with an image of the same layers: %v %v", collected, err)
	}
	if err := s.Remove("archived:1", use.Layers); err != nil {
		t.Fatal(err)
	}
	if collected, err = s.Collect(Use{}); err != nil || len(collected.Images) != 1 || collected.FreedBytes != 5 {
		t.Errorf("nothing used: %v %v", collected, err)
	}
}
