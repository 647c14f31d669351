package imagesocket

import (
	"bytes"
	"context"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/images"
)

// serve runs a server in a folder whose name is longer than an address of a socket may be.
func serve(t *testing.T) (*Client, *images.Store) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: owners of files")
	}
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	store, err := images.Open(images.Config{Dir: filepath.Join(dir, "images"), Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	none := func() (images.Use, error) { return images.Use{}, nil }
	go func() { ended <- Run(ctx, listener, Config{Dir: dir, Store: store, Use: none, Logger: logger}) }()
	client := NewClient(dir)
	t.Cleanup(func() {
		client.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(filepath.Join(dir, socketName)); !os.IsNotExist(err) {
			t.Errorf("the socket after the end: %v", err)
		}
	})
	return client, store
}

// gate holds back a layer until it is opened.
type gate struct {
	http.Handler
	layer string
	open  chan struct{}
}

func (g gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, g.layer) {
		<-g.open
	}
	g.Handler.ServeHTTP(w, r)
}

func pushed(t *testing.T) (ref string, image v1.Image, g gate) {
	t.Helper()
	image, err := random.Image(1<<10, 1)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	g = gate{registry.New(registry.Logger(log.New(io.Discard, "", 0))), digest.String(), make(chan struct{})}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	ref = strings.TrimPrefix(server.URL, "http://") + "/team/app:v1"
	parsed, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(parsed, image); err != nil {
		t.Fatal(err)
	}
	return ref, image, g
}

func TestPullTellsHowFarItIs(t *testing.T) {
	client, store := serve(t)
	ref, image, g := pushed(t)
	told := 0
	pulled, err := client.Pull(t.Context(), ref, images.Auth{}, func(p images.Pulling) {
		if told++; told > 1 {
			return
		}
		if bytes, total, underway := store.Progress(ref); !underway || bytes < p.Bytes || total != p.TotalBytes {
			t.Errorf("%d of %d bytes, after %+v", bytes, total, p)
		}
		if p.Image != ref || p.TotalBytes == 0 || p.Bytes > p.TotalBytes {
			t.Errorf("progress: %+v", p)
		}
		if list, err := client.List(t.Context()); err != nil || len(list.Pulling) != 1 || len(list.Images) != 0 {
			t.Errorf("list while it pulls: %+v %v", list, err)
		}
		close(g.open)
	})
	if err != nil || told == 0 {
		t.Fatalf("told %d times: %v", told, err)
	}
	want, err := image.ConfigName()
	if err != nil || pulled.ID != want.String() {
		t.Errorf("pulled %s, want %s: %v", pulled.ID, want, err)
	}
	if list, err := client.List(t.Context()); err != nil || len(list.Pulling) != 0 || len(list.Images) != 1 {
		t.Errorf("list after it: %+v %v", list, err)
	}
	if pruned, err := client.Prune(t.Context()); err != nil || len(pruned.Images) != 1 || pruned.FreedBytes == 0 {
		t.Errorf("prune: %+v %v", pruned, err)
	}
}

func TestAClientThatLeavesEndsItsPull(t *testing.T) {
	client, store := serve(t)
	ref, _, g := pushed(t)
	defer close(g.open)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := client.Pull(ctx, ref, images.Auth{}, func(images.Pulling) { cancel() }); err == nil {
		t.Error("pulled what nobody waited for")
	}
	ticks := time.NewTicker(time.Millisecond)
	defer ticks.Stop()
	for len(store.Pulling()) > 0 {
		select {
		case <-ticks.C:
		case <-t.Context().Done():
			t.Fatal("it still pulls")
		}
	}
}

func TestErrorsReachTheClient(t *testing.T) {
	client, _ := serve(t)
	_, pull := client.Pull(t.Context(), "NOT A NAME", images.Auth{}, nil)
	_, loaded := client.Import(t.Context(), strings.NewReader("no archive"))
	var out bytes.Buffer
	for err, want := range map[error]string{
		pull: "invalid image name", loaded: "neither a docker-archive", client.Save(t.Context(), &out, "nosuch:1"): "image not found: nosuch:1",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if out.Len() > 0 {
		t.Errorf("written: %q", out.String())
	}
}

func TestAnArchiveThatBreaksOffIsAnError(t *testing.T) {
	client, store := serve(t)
	ref, _, g := pushed(t)
	close(g.open)
	image, err := store.Pull(t.Context(), ref, images.Auth{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(store.LayersDir(), image.Layers[0])); err != nil {
		t.Fatal(err)
	}
	if err := client.Save(t.Context(), io.Discard, ref); err == nil {
		t.Error("saved an image whose layer is gone")
	}
}
