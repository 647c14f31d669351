package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sys/unix"
)

// nothingLeft looks at where layers are unpacked.
func nothingLeft(t *testing.T, s *Store) {
	t.Helper()
	for _, dir := range []string{s.LayersDir(), s.tarsDir(), s.recordsDir(), s.sizesDir()} {
		if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
			t.Errorf("%s: %v %v", dir, left, err)
		}
	}
}

// TestLayersThatGoOnForTooLong: each is refused for what it is, and nothing of it stays.
func TestLayersThatGoOnForTooLong(t *testing.T) {
	const megabyte = 1 << 20
	long := strings.Repeat("d/", nameBytesMax/2+1)
	full := func(_ string, into *unix.Statfs_t) error {
		*into = unix.Statfs_t{Bsize: 4096, Blocks: 1000, Bavail: 19, Files: 1000, Ffree: 500}
		return nil
	}
	manyFiles := func(_ string, into *unix.Statfs_t) error {
		*into = unix.Statfs_t{Bsize: 4096, Blocks: 1 << 40, Bavail: 1 << 30, Files: 1000, Ffree: 19}
		return nil
	}
	header := func(h tar.Header) []byte {
		var out bytes.Buffer
		if err := tar.NewWriter(&out).WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	for name, c := range map[string]struct {
		limits func(*limits)
		statfs func(string, *unix.Statfs_t) error
		tar    io.Reader
		want   error
		says   string
	}{
		"content": {func(l *limits) { l.bytes = megabyte }, nil,
			io.MultiReader(bytes.NewReader(header(tar.Header{Name: "zeros", Typeflag: tar.TypeReg, Size: 100 << 30})), zeros{}), errTooLarge, "more than 1048576 bytes"},
		"the size of an entry that is no file": {func(l *limits) { l.tarBytes = megabyte }, nil,
			io.MultiReader(bytes.NewReader(header(tar.Header{Name: "odd", Typeflag: 'Z', Size: 100 << 30, Format: tar.FormatGNU})), zeros{}), errTooLarge, "the tar of a layer"},
		"what follows the end": {func(l *limits) { l.tarBytes = megabyte }, nil,
			io.MultiReader(bytes.NewReader(layerTar(t, entry{name: "a", content: "a"})), zeros{}), errTooLarge, "the tar of a layer"},
		"files": {func(l *limits) { l.entries = 2 }, nil,
			bytes.NewReader(layerTar(t, entry{name: "a"}, entry{name: "b"}, entry{name: "c"})), errTooLarge, "more than 2 files"},
		"names of folders": {func(l *limits) { l.folderBytes = 3 }, nil,
			bytes.NewReader(layerTar(t, entry{name: "a/", kind: tar.TypeDir}, entry{name: "bc/", kind: tar.TypeDir})), errTooLarge, "folders have names"},
		"a name":              {nil, nil, bytes.NewReader(layerTar(t, entry{name: long + "f"})), unix.ENAMETOOLONG, "more than 4095 bytes"},
		"where a link leads":  {nil, nil, bytes.NewReader(layerTar(t, entry{name: "l", kind: tar.TypeSymlink, link: long})), unix.ENAMETOOLONG, ""},
		"a disk without room": {nil, full, bytes.NewReader(layerTar(t, entry{name: "a", content: "a"})), errNoRoom, "the disk is nearly full"},
		"a disk of few files": {nil, manyFiles, bytes.NewReader(layerTar(t, entry{name: "a"})), errNoRoom, "of its files"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, t.TempDir(), "")
			if c.limits != nil {
				c.limits(&s.limits)
			}
			if c.statfs != nil {
				s.statfs = c.statfs
			}
			_, err := s.fillLayer("layer", func(dir string) (uint64, error) {
				return s.unpackVerified(dir, v1.Hash{Algorithm: "sha256"}, io.NopCloser(c.tar))
			})
			if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("%v, want %v", err, c.want)
			}
			nothingLeft(t, s)
		})
	}
}

// TestADiskIsLookedAtWhileAFileIsWritten: what other pods need of it stays free.
func TestADiskIsLookedAtWhileAFileIsWritten(t *testing.T) {
	s := openStore(t, t.TempDir(), "")
	looks := 0
	s.statfs = func(_ string, into *unix.Statfs_t) error {
		if looks++; looks == 3 {
			*into = unix.Statfs_t{Bsize: 4096, Blocks: 1 << 30, Bavail: 1 << 17}
			return nil
		}
		*into = unix.Statfs_t{Bsize: 4096, Blocks: 1 << 30, Bavail: 1 << 18}
		return nil
	}
	content := bytes.Repeat([]byte{'x'}, 3*roomCheckBytes)
	_, err := s.add(imageOf(t, layerTar(t, entry{name: "large", content: string(content)})), Image{Tags: []string{"docker.io/library/large:1"}})
	if !errors.Is(err, errNoRoom) {
		t.Errorf("%v after %d looks", err, looks)
	}
	nothingLeft(t, s)
}

// TestRegistriesThatLie: what they say has no end, or is too much, is refused before it is read whole.
func TestRegistriesThatLie(t *testing.T) {
	manifest := func(size int64, layers int) string {
		layer := fmt.Sprintf(`{"mediaType":%q,"size":1,"digest":"sha256:%064d"}`, types.DockerLayer, 0)
		return fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":%q,"size":%d,"digest":"sha256:%064d"},"layers":[%s]}`,
			types.DockerManifestSchema2, types.DockerConfigJSON, size, 0, strings.TrimSuffix(strings.Repeat(layer+",", layers), ","))
	}
	for name, c := range map[string]struct {
		manifest  io.Reader
		elsewhere bool // the registry sends who asks for it to another place
		says      string
	}{
		"a manifest without end":            {zeros{}, false, "a manifest of more than 4 MiB"},
		"a manifest without end, elsewhere": {zeros{}, true, "a manifest of more than 4 MiB"},
		"a config of 100 GiB":               {strings.NewReader(manifest(100<<30, 1)), false, "a config of 107374182400 bytes"},
		"a config of nobody knows":          {strings.NewReader(manifest(-1, 1)), false, "a config of -1 bytes"},
		"a config that is not its digest":   {strings.NewReader(manifest(10, 1)), false, "error verifying sha256 checksum"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case c.elsewhere && strings.Contains(r.URL.Path, "/manifests/"):
					http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
				case r.URL.Path == "/elsewhere", strings.Contains(r.URL.Path, "/manifests/"):
					w.Header().Set("Content-Type", string(types.DockerManifestSchema2))
					_, _ = io.Copy(w, c.manifest) // until the client has enough
				case strings.Contains(r.URL.Path, "/blobs/"):
					_, _ = io.Copy(w, zeros{})
				}
			}))
			defer server.Close()
			s := openStore(t, t.TempDir(), "")
			_, err := s.Pull(t.Context(), strings.TrimPrefix(server.URL, "http://")+"/team/app:v1", Auth{})
			if !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
			nothingLeft(t, s)
		})
	}
}

// TestARepositoryCalledManifests has layers as large as others.
func TestARepositoryCalledManifests(t *testing.T) {
	content := make([]byte, manifestBytesMax+1)
	for i := range content {
		content[i] = byte(rand.Uint32()) // so that it stays as large when it is compressed
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	ref, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://") + "/team/manifests/app:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, imageOf(t, layerTar(t, entry{name: "large", content: string(content)}))); err != nil {
		t.Fatal(err)
	}
	if _, err := openStore(t, t.TempDir(), "").Pull(t.Context(), ref.Name(), Auth{}); err != nil {
		t.Error(err)
	}
}

func TestAnImageOfTooManyLayers(t *testing.T) {
	layers := make([][]byte, layersMax+1)
	for i := range layers {
		layers[i] = layerTar(t, entry{name: "same"})
	}
	s := openStore(t, t.TempDir(), "")
	if _, err := s.add(imageOf(t, layers...), Image{}); !errors.Is(err, errTooManyLayers) {
		t.Errorf("%v", err)
	}
	if _, err := s.add(imageOf(t, layers[1:]...), Image{}); err != nil {
		t.Errorf("as many as there may be: %v", err)
	}
}

// TestDecompression: what a stream begins with says what it is, and none gets as much memory as it likes.
func TestDecompression(t *testing.T) {
	var zipped bytes.Buffer
	writer := gzip.NewWriter(&zipped)
	_, _ = writer.Write([]byte("text")) // into memory
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	// A frame of one raw block, whose second byte is the logarithm of the window, less 10, times 8.
	frame := func(window byte) []byte {
		return append(append(bytes.Clone(zstdMark), 0, window, 4<<3|1, 0, 0), "text"...)
	}
	for name, c := range map[string]struct {
		stream []byte
		want   string
	}{
		"plain": {[]byte("text"), "text"}, "short": {[]byte("x"), "x"}, "nothing": {nil, ""}, "gzip": {zipped.Bytes(), "text"},
		"zstd": {frame((20 - 10) << 3), "text"}, "zstd's own limit": {frame((27 - 10) << 3), "text"}, "zstd beyond": {frame((28 - 10) << 3), "!window size exceeded"},
		"gzip that ends early": {zipped.Bytes()[:zipped.Len()-9], "!unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			content, err := decompressed(bytes.NewReader(c.stream))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(content)
			if failed, ok := strings.CutPrefix(c.want, "!"); ok {
				if !strings.Contains(fmt.Sprint(err), failed) {
					t.Errorf("%q, %v", got, err)
				}
				return
			}
			if string(got) != c.want || err != nil || content.Close() != nil {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// TestEntriesWhoseFolderIsReplaced: the folder that is kept open between entries is never another one than their names say.
func TestEntriesWhoseFolderIsReplaced(t *testing.T) {
	s, dir := openStore(t, t.TempDir(), ""), t.TempDir()
	_, err := unpack(&room{dir: dir, statfs: s.statfs}, s.limits, bytes.NewReader(layerTar(t,
		entry{name: "a/b/first", content: "1"}, entry{name: "a/b", content: "a file now"}, entry{name: "a/b/", kind: tar.TypeDir},
		entry{name: "a/b/second", content: "2"}, entry{name: "c/", kind: tar.TypeDir}, entry{name: "a/b", kind: tar.TypeSymlink, link: "../c"},
		entry{name: "a/b/third", content: "3"})))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			found = append(found, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	if err != nil || len(found) != 1 || found[0] != "c/third" {
		t.Errorf("%v %v", found, err)
	}
}

// TestEntriesThatAreNoFiles are passed over: git, for one, begins its archives with a comment.
func TestEntriesThatAreNoFiles(t *testing.T) {
	s := openStore(t, t.TempDir(), "")
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	comment := &tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": "0123"}}
	if err := errors.Join(archive.WriteHeader(comment), archive.Flush()); err != nil {
		t.Fatal(err)
	}
	image, err := s.add(imageOf(t, append(out.Bytes(), layerTar(t, entry{name: "a", content: "a"})...)), Image{})
	if err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(filepath.Join(s.LayersDir(), image.Layers[0])); err != nil || len(files) != 1 || files[0].Name() != "a" {
		t.Errorf("%v %v", files, err)
	}
}
