package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sys/unix"
)

type entry struct {
	name, content, link string
	kind                byte
	mode                int64
}

func layerTar(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for _, e := range entries {
		if e.kind == 0 {
			e.kind = tar.TypeReg
		}
		if e.mode == 0 {
			e.mode = 0o644
		}
		header := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: e.mode, Linkname: e.link, Size: int64(len(e.content))}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func imageOf(t testing.TB, layers ...[]byte) v1.Image {
	t.Helper()
	image := empty.Image
	for _, content := range layers {
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
		if err != nil {
			t.Fatal(err)
		}
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			t.Fatal(err)
		}
	}
	image, err := mutate.Config(image, v1.Config{Entrypoint: []string{"/run"}})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func openStore(t *testing.T, dir, archives string) *Store {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: owners and device nodes")
	}
	s, err := Open(Config{Dir: dir, ArchivesDir: archives, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestUnpackWhiteoutsAndModes(t *testing.T) {
	s := openStore(t, t.TempDir(), "")
	image, err := s.add(imageOf(t,
		layerTar(t, entry{name: "etc/passwd", content: "root"}, entry{name: "bin/su", content: "su", mode: 0o4755}),
		layerTar(t,
			entry{name: "etc/.wh.passwd"}, entry{name: "var/", kind: tar.TypeDir, mode: 0o1777}, entry{name: "var/.wh..wh..opq"},
			entry{name: "link", kind: tar.TypeSymlink, link: "/etc/passwd"}, entry{name: "twice", content: "1"},
			entry{name: "twice", content: "second"}, entry{name: "hard", kind: tar.TypeLink, link: "twice"})),
		Image{Tags: []string{"docker.io/library/x:1"}})
	if err != nil {
		t.Fatal(err)
	}
	lower, upper := filepath.Join(s.LayersDir(), image.Layers[0]), filepath.Join(s.LayersDir(), image.Layers[1])
	var stat unix.Stat_t
	if err := unix.Lstat(filepath.Join(upper, "etc/passwd"), &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFCHR || stat.Rdev != 0 {
		t.Errorf("whiteout: mode %o, device %d, %v", stat.Mode, stat.Rdev, err)
	}
	value := make([]byte, 1)
	if _, err := unix.Getxattr(filepath.Join(upper, "var"), "trusted.overlay.opaque", value); err != nil || value[0] != 'y' {
		t.Errorf("opaque directory: %q %v", value, err)
	}
	if err := unix.Lstat(filepath.Join(lower, "bin/su"), &stat); err != nil || stat.Mode&0o7777 != 0o4755 {
		t.Errorf("set-user-id file: %o %v", stat.Mode, err)
	}
	if link, err := os.Readlink(filepath.Join(upper, "link")); link != "/etc/passwd" {
		t.Errorf("symlink: %q %v", link, err)
	}
	if content, err := os.ReadFile(filepath.Join(upper, "hard")); string(content) != "second" {
		t.Errorf("hard link to the later of two entries: %q %v", content, err)
	}
}

func TestUnpackNeverLeavesTheLayer(t *testing.T) {
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("safe"), 0o644); err != nil {
		t.Fatal(err)
	}
	up := strings.Repeat("../", 12)
	tests := map[string][]entry{
		"dot dot":               {{name: up + victim[1:], content: "owned"}},
		"absolute name":         {{name: victim, content: "inside"}},
		"through a symlink":     {{name: "out", kind: tar.TypeSymlink, link: filepath.Dir(victim)}, {name: "out/victim", content: "owned"}},
		"over a symlink":        {{name: "out", kind: tar.TypeSymlink, link: victim}, {name: "out", content: "replaced"}},
		"relative symlink":      {{name: "out", kind: tar.TypeSymlink, link: up + filepath.Dir(victim)[1:]}, {name: "out/victim", content: "owned"}},
		"hard link":             {{name: "out", kind: tar.TypeLink, link: victim}, {name: "out", content: "owned"}},
		"whiteout by a symlink": {{name: "out", kind: tar.TypeSymlink, link: filepath.Dir(victim)}, {name: "out/.wh.victim"}},
		"whiteout of dot dot":   {{name: "dir/.wh..."}, {name: "dir/.wh.."}},
		"link then mode":        {{name: "out", kind: tar.TypeSymlink, link: victim}, {name: "out/", kind: tar.TypeDir, mode: 0o777}},
	}
	for name, entries := range tests {
		t.Run(name, func(t *testing.T) {
			if os.Geteuid() != 0 {
				t.Skip("needs root: owners and device nodes")
			}
			_, err := unpack(&room{dir: t.TempDir(), statfs: unix.Statfs}, defaultLimits, bytes.NewReader(layerTar(t, entries...)))
			t.Log(err) // refused or harmless: both are right
			if content, err := os.ReadFile(victim); string(content) != "safe" {
				t.Fatalf("victim is %q, %v", content, err)
			}
		})
	}
}

// lyingLayer promises another layer's content.
type lyingLayer struct {
	v1.Layer
	content []byte
}

func (l lyingLayer) Uncompressed() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(l.content)), nil
}

func TestDigestIsChecked(t *testing.T) {
	s := openStore(t, t.TempDir(), "")
	image := imageOf(t, layerTar(t, entry{name: "a", content: "a"}))
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	diffID, err := layers[0].DiffID()
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.addLayer(nil, diffID, lyingLayer{layers[0], layerTar(t, entry{name: "b", content: "b"})}, v1.Layer.Uncompressed)
	if !errors.Is(err, ErrDigestMismatch) {
		t.Errorf("error %v", err)
	}
	if left, _ := os.ReadDir(s.LayersDir()); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestArchives(t *testing.T) {
	archives := t.TempDir()
	s := openStore(t, t.TempDir(), archives)
	docker := imageOf(t, layerTar(t, entry{name: "docker", content: "1"}))
	oci := imageOf(t, layerTar(t, entry{name: "oci", content: "2"}))
	writeDocker(t, filepath.Join(archives, "docker.tar"), "shop:2", docker)
	writeOCI(t, filepath.Join(archives, "oci.tar"), "example.com/shop/cart:3", oci)
	writeDocker(t, filepath.Join(archives, "plain.tar"), "zipped:1", docker)
	gzipFile(t, filepath.Join(archives, "plain.tar"))
	if err := os.WriteFile(filepath.Join(archives, "broken.tar"), []byte("not an archive"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.LoadArchives(); err == nil || !strings.Contains(err.Error(), "broken.tar") {
		t.Errorf("error %v", err)
	}
	for _, ref := range []string{"shop:2", "docker.io/library/shop:2", "example.com/shop/cart:3", "zipped:1"} {
		if _, err := s.Get(ref); err != nil {
			t.Errorf("%s: %v", ref, err)
		}
	}
	if list := s.List(); len(list) != 2 {
		t.Errorf("%d images, want 2: equal content is one image", len(list))
	}
	reopened := openStore(t, s.config.Dir, "")
	if diff := cmp.Diff(tagsOf(s), tagsOf(reopened)); diff != "" {
		t.Errorf("after reopening: %s", diff)
	}
}

// TestAnIndexWithinItself is refused: its digest is only a name of a file.
func TestAnIndexWithinItself(t *testing.T) {
	archives := t.TempDir()
	s := openStore(t, t.TempDir(), archives)
	path := filepath.Join(archives, "a.tar")
	const index = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.index.v1+json","size":1,"digest":"sha256:` +
		`1111111111111111111111111111111111111111111111111111111111111111"}]}`
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	archive := tar.NewWriter(file)
	for name, content := range map[string]string{
		"oci-layout": `{"imageLayoutVersion":"1.0.0"}`, "index.json": index, "blobs/sha256/" + strings.Repeat("1", 64): index,
	} {
		err = errors.Join(err, archive.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644}))
		_, writeErr := archive.Write([]byte(content))
		err = errors.Join(err, writeErr)
	}
	if err := errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
	if images, err := s.LoadArchive(path); !errors.Is(err, errNotAnArchive) {
		t.Errorf("%v, %v", images, err)
	}
}

func TestPullFromRegistry(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	image := imageOf(t, layerTar(t, entry{name: "run", content: "#!"}))
	ref, err := name.ParseReference(host + "/team/app:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, t.TempDir(), "")
	pulled, err := s.Pull(t.Context(), ref.Name(), Auth{})
	if err != nil {
		t.Fatal(err)
	}
	digest, _ := image.Digest()
	byDigest, err := s.Pull(t.Context(), fmt.Sprintf("%s/team/app@%s", host, digest), Auth{})
	if err != nil || byDigest.ID != pulled.ID {
		t.Errorf("by digest: %v, %v", byDigest.ID, err)
	}
	if _, err := s.Pull(t.Context(), host+"/team/nosuch:v1", Auth{}); err == nil {
		t.Error("pulled what does not exist")
	}
	server.Close()
	if _, err := s.Pull(t.Context(), ref.Name(), Auth{}); err == nil {
		t.Error("registry down, and a copy that was pulled passes for pulled anew")
	}
	if _, err := s.Pull(t.Context(), LocalDomain+"/nosuch:v1", Auth{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("local image that is not here: %v", err)
	}
}

// TestWhatAnArchiveGaveServesWhileTheRegistryCannotBeAsked, and only then: a registry that says no is believed.
func TestWhatAnArchiveGaveServesWhileTheRegistryCannotBeAsked(t *testing.T) {
	code := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	archives := t.TempDir()
	writeDocker(t, filepath.Join(archives, "app.tar"), host+"/team/app:v1", imageOf(t, layerTar(t, entry{name: "run", content: "#!"})))
	s := openStore(t, t.TempDir(), archives)
	for _, answer := range []struct {
		code  int
		local bool
	}{
		{http.StatusUnauthorized, false}, {http.StatusForbidden, false}, {http.StatusNotFound, false},
		{http.StatusTooManyRequests, true}, {http.StatusNotImplemented, true},
	} {
		code = answer.code
		if _, err := s.Pull(t.Context(), host+"/team/app:v1", Auth{}); (err == nil) != answer.local {
			t.Errorf("registry says %d: %v", code, err)
		}
	}
	server.Close()
	if _, err := s.Pull(t.Context(), host+"/team/app:v1", Auth{}); err != nil {
		t.Errorf("registry down: %v", err)
	}
}

func TestRemoveKeepsLayersInUse(t *testing.T) {
	s := openStore(t, t.TempDir(), "")
	shared := layerTar(t, entry{name: "base", content: "b"})
	one, err := s.add(imageOf(t, shared, layerTar(t, entry{name: "one", content: "1"})), Image{Tags: []string{"docker.io/library/one:1"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.add(imageOf(t, shared), Image{Tags: []string{"docker.io/library/base:1"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove("one:1", map[string]bool{one.Layers[1]: true}); err != nil {
		t.Fatal(err)
	}
	for _, layer := range one.Layers {
		if _, err := os.Stat(filepath.Join(s.LayersDir(), layer)); err != nil {
			t.Errorf("layer in use: %v", err)
		}
	}
	if err := s.Prune(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(s.LayersDir(), one.Layers[1])); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("unused layer after pruning: %v", err)
	}
	if err := s.Remove("one:1", nil); err != nil {
		t.Errorf("removing again: %v", err)
	}
}

func TestNormalize(t *testing.T) {
	tests := map[string]string{
		"nginx": "docker.io/library/nginx:latest", "a/b:1": "docker.io/a/b:1", "setpoint.local/demo:v1": "setpoint.local/demo:v1",
		"127.0.0.1:5000/x": "127.0.0.1:5000/x:latest", "UPPER": "",
	}
	for ref, want := range tests {
		got, err := Normalize(ref)
		if got != want || (want == "") != errors.Is(err, ErrInvalidName) {
			t.Errorf("%s: %q, %v", ref, got, err)
		}
	}
}

func TestLocalImageMovesItsTag(t *testing.T) {
	s := openStore(t, t.TempDir(), "")
	fills := 0
	local := func(key string) Image {
		image, err := s.AddLocal(Local{Tag: "setpoint.local/demo:v1", LayerKey: key, Fill: func(dir string) (uint64, error) {
			fills++
			return 3, os.WriteFile(filepath.Join(dir, "x"), []byte(key), 0o644)
		}})
		if err != nil {
			t.Fatal(err)
		}
		return image
	}
	first, again, second := local("old"), local("old"), local("new")
	if first.ID != again.ID || first.ID == second.ID || fills != 2 {
		t.Errorf("ids %s %s %s after %d fills", first.ID, again.ID, second.ID, fills)
	}
	if now, err := s.Get("setpoint.local/demo:v1"); err != nil || now.ID != second.ID || !now.Pinned || now.SizeBytes != 3 {
		t.Errorf("tag: %v %v", now, err)
	}
	if old, err := s.Get(first.ID); err != nil || old.Pinned {
		t.Errorf("the old image should be garbage: %v %v", old, err)
	}
}

func tagsOf(s *Store) map[string][]string {
	tags := map[string][]string{}
	for _, image := range s.List() {
		tags[image.ID] = image.Tags
	}
	return tags
}

func writeDocker(t testing.TB, path, tag string, image v1.Image) {
	t.Helper()
	ref, err := name.NewTag(tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(path, ref, image); err != nil {
		t.Fatal(err)
	}
}

func writeOCI(t testing.TB, path, tag string, image v1.Image) {
	t.Helper()
	dir := t.TempDir()
	index, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := index.AppendImage(image, layout.WithAnnotations(map[string]string{annotationName: tag})); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	archive := tar.NewWriter(file)
	if err := archive.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
}

func gzipFile(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	zipper := gzip.NewWriter(&out)
	if _, err := zipper.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := zipper.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(path+".gz", out.Bytes(), 0o644), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
}
