package images

import (
	"bytes"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/compression"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/registries"
)

// published is a registry with the image as team/app:v1; first may answer in its place.
func published(t *testing.T, image v1.Image, first func(w http.ResponseWriter, r *http.Request) bool) (host string) {
	t.Helper()
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead || !first(w, r) {
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	host = strings.TrimPrefix(server.URL, "http://")
	ref, err := name.ParseReference(host + "/team/app:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image); err != nil {
		t.Fatal(err)
	}
	return host
}

func never(http.ResponseWriter, *http.Request) bool { return false }

// TestMirrors are asked in order, without the pod's credentials, and the image has the name that was asked for.
func TestMirrors(t *testing.T) {
	image := imageOf(t, layerTar(t, entry{name: "run", content: "#!"}))
	broken := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(broken.Close)
	mirror := published(t, image, func(_ http.ResponseWriter, r *http.Request) bool {
		if user, _, ok := r.BasicAuth(); ok {
			t.Errorf("the mirror was told of %s", user)
		}
		return false
	})
	path := filepath.Join(t.TempDir(), "registries.yaml")
	text := `{mirrors: {quay.example.com: {endpoint: ["` + broken.URL + `", "http://` + mirror + `"]}}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	places, err := registries.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s := openStore(t, t.TempDir(), "")
	s.config.Registries = places
	pulled, err := s.Pull(t.Context(), "quay.example.com/team/app:v1", Auth{Username: "pod", Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	if len(pulled.Tags) != 1 || pulled.Tags[0] != "quay.example.com/team/app:v1" || !strings.HasPrefix(pulled.Digests[0], "quay.example.com/team/app@") {
		t.Errorf("stored as %v, %v", pulled.Tags, pulled.Digests)
	}
	if _, err := s.Pull(t.Context(), "quay.example.com/team/other:v1", Auth{}); err == nil || strings.Contains(err.Error(), mirror) {
		t.Errorf("what nobody has ends at the registry itself: %v", err)
	}
}

// TestZstandard: layers may be compressed by it.
func TestZstandard(t *testing.T) {
	content := layerTar(t, entry{name: "run", content: strings.Repeat("#!", 10_000)})
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithCompression(compression.ZStd), tarball.WithMediaType("application/vnd.oci.image.layer.v1.tar+zstd"))
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	s := openStore(t, t.TempDir(), "")
	s.config.Logger = slog.New(slog.DiscardHandler)
	pulled, err := s.Pull(t.Context(), published(t, image, never)+"/team/app:v1", Auth{})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(s.LayersDir(), pulled.Layers[0], "run")); err != nil || len(text) != 20_000 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
