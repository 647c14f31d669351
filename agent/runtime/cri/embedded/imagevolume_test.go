package embedded

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// layerOf has files and, for contents that begin with "->", links.
func layerOf(t *testing.T, files map[string]string) v1.Layer {
	t.Helper()
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	for path, data := range files {
		h := &tar.Header{Name: path, Mode: 0o755, Size: int64(len(data)), Typeflag: tar.TypeReg}
		if to, link := bytes.CutPrefix([]byte(data), []byte("->")); link {
			h.Typeflag, h.Linkname, h.Size, data = tar.TypeSymlink, string(to), 0, ""
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return layer
}

// archive puts an image of layers into a folder.
func archive(t *testing.T, dir, image string, layers ...v1.Layer) {
	t.Helper()
	made, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.NewTag(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(filepath.Join(dir, ref.RepositoryStr()+".tar"), ref, made); err != nil {
		t.Fatal(err)
	}
}

// TestImageVolumes: a container sees the files of another image, all layers of it or a part, and can neither change nor
// execute them, nor get out of them by a link that the image brings.
func TestImageVolumes(t *testing.T) {
	config := testConfig(t)
	config.ImagesDir = t.TempDir()
	archive(t, config.ImagesDir, "setpoint.local/data:v1",
		layerOf(t, map[string]string{"a/low": "low", "a/both": "old", "a/gone": "x", "bin/run": "#!/setpoint\n"}),
		layerOf(t, map[string]string{"a/both": "new", "a/.wh.gone": "", "out": "->/etc", "up": "->../../../..", "in": "->/a"}))
	archive(t, config.ImagesDir, "setpoint.local/single:v1", layerOf(t, map[string]string{"file": "one layer"}))
	r := open(t, config)
	t.Cleanup(func() { removeAll(t, r) })
	p := runPod(t, r, nil)
	volume := func(image, at, sub string) *runtimeapi.Mount {
		found, err := r.ImageStatus(t.Context(), &runtimeapi.ImageSpec{Image: image}, false)
		if err != nil || found.Image == nil {
			t.Fatal(image, err)
		}
		return &runtimeapi.Mount{ContainerPath: at, Image: &runtimeapi.ImageSpec{Image: found.Image.Id}, ImageSubPath: sub, Readonly: true}
	}
	look := containerConfig("read=/v/a/low", "read=/v/a/both", "list=/v/a", "write=/v/a/low", "write=/v/new", "list=/sub", "read=/file",
		"list=/single", "list=/linked", "list=/up")
	look.Mounts = append(look.Mounts, volume("setpoint.local/data:v1", "/v", ""), volume("setpoint.local/data:v1", "/sub", "a"),
		volume("setpoint.local/data:v1", "/file", "a/both"), volume("setpoint.local/single:v1", "/single", ""),
		volume("setpoint.local/data:v1", "/linked", "in"), volume("setpoint.local/data:v1", "/up", "up"))
	want := map[string]string{
		"read=/v/a/low": "low", "read=/v/a/both": "new", "list=/v/a": "both low", "list=/sub": "both low", "read=/file": "new",
		"write=/v/a/low": "open /v/a/low: read-only file system", "write=/v/new": "open /v/new: read-only file system",
		"list=/single": "file", "list=/linked": "both low", "list=/up": "a bin in out up",
	}
	if diff := cmp.Diff(want, p.facts(look)); diff != "" {
		t.Error(diff)
	}
	missing := containerConfig("look")
	missing.Metadata.Attempt, missing.Mounts = 1, []*runtimeapi.Mount{volume("setpoint.local/data:v1", "/v", "a/nowhere")}
	if err := r.StartContainer(t.Context(), p.create(missing)); err == nil {
		t.Error("a path that the image does not have was mounted")
	}
	run := containerConfig()
	run.Metadata.Attempt, run.Command, run.Mounts = 2, []string{"/v/bin/run"}, append(libraries(), volume("setpoint.local/data:v1", "/v", ""))
	if err := r.StartContainer(t.Context(), p.create(run)); err == nil {
		t.Error("a file of an image volume was executed")
	}
	unknown := containerConfig()
	unknown.Metadata.Attempt, unknown.Mounts = 3, []*runtimeapi.Mount{{ContainerPath: "/v", Image: &runtimeapi.ImageSpec{Image: "setpoint.local/no:v1"}}}
	if _, err := r.CreateContainer(t.Context(), p.id, unknown, p.config); status.Code(err) != codes.NotFound {
		t.Errorf("an image that is not there: %v", err)
	}
}

// TestLayersOfImageVolumesStay while a container has them, though the image is removed, also over a restart of the runtime.
func TestLayersOfImageVolumesStay(t *testing.T) {
	config := testConfig(t)
	config.ImagesDir = t.TempDir()
	archive(t, config.ImagesDir, "setpoint.local/data:v1", layerOf(t, map[string]string{"file": "here"}))
	r := open(t, config)
	p := runPod(t, r, nil)
	look := containerConfig("look", "read=/v/file")
	look.Mounts = append(look.Mounts, &runtimeapi.Mount{ContainerPath: "/v", Image: &runtimeapi.ImageSpec{Image: "setpoint.local/data:v1"}})
	id := p.create(look)
	if err := os.RemoveAll(config.ImagesDir); err != nil {
		t.Fatal(err)
	}
	if err := r.RemoveImage(t.Context(), &runtimeapi.ImageSpec{Image: "setpoint.local/data:v1"}); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	r = open(t, config)
	t.Cleanup(func() { removeAll(t, r) })
	p = &pod{t, r, p.config, p.id}
	if err := r.StartContainer(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if full := p.exit(id); full.ExitCode != 0 || p.log(id) != "read=/v/file: here\n" {
		t.Errorf("exit %d, log %q", full.ExitCode, p.log(id))
	}
}
