package images

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/setpoint-io/setpoint/agent/runtime/images/peers"
)

func diffIDs(t *testing.T, image v1.Image) []v1.Hash {
	t.Helper()
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return file.RootFS.DiffIDs
}

// awkward is a layer with what unpacking translates or replaces.
func awkward(t *testing.T) []byte {
	t.Helper()
	return append(layerTar(t,
		entry{name: "./" + strings.Repeat("deep/", 40) + "file", content: strings.Repeat("x", 100_000)},
		entry{name: "bin/tool", content: "tool", mode: 0o4755}, entry{name: "bin/other", kind: tar.TypeLink, link: "bin/tool"},
		entry{name: "lib", kind: tar.TypeSymlink, link: "/usr/lib"}, entry{name: "empty"},
		entry{name: "dir/.wh.gone"}, entry{name: "opaque/.wh..wh..opq"}, entry{name: "pipe", kind: tar.TypeFifo},
	), make([]byte, 5000)...) // more padding than it needs
}

// TestALayerIsHandedOutAsItCame, byte for byte, until it is removed.
func TestALayerIsHandedOutAsItCame(t *testing.T) {
	s := openStore(t, t.TempDir(), "")
	layer := awkward(t)
	image := imageOf(t, layer)
	stored, err := s.add(image, Image{Tags: []string{"docker.io/library/a:1"}})
	if err != nil {
		t.Fatal(err)
	}
	id := diffIDs(t, image)[0]
	var out bytes.Buffer
	if err := s.WriteLayer(t.Context(), id.String(), &out); err != nil || !bytes.Equal(out.Bytes(), layer) || s.LayerState(id.String()) != peers.Here {
		t.Errorf("%v; %d bytes of %d", err, out.Len(), len(layer))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.WriteLayer(ended, id.String(), io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("for a client that is gone: %v", err)
	}
	if err := s.Remove(stored.ID, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteLayer(t.Context(), id.String(), io.Discard); !errors.Is(err, ErrNotFound) || s.LayerState(id.String()) != peers.None {
		t.Errorf("removed: %v", err)
	}
	if left, _ := os.ReadDir(s.tarsDir()); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestALayerThatCannotBeNoted is unpacked all the same, and handed out to nobody.
func TestALayerThatCannotBeNoted(t *testing.T) {
	s := openStore(t, t.TempDir(), "")
	image := imageOf(t, layerTar(t, entry{name: "twice", content: "1"}, entry{name: "twice", content: "2"}))
	stored, err := s.add(image, Image{Tags: []string{"docker.io/library/a:1"}})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(s.LayersDir(), stored.Layers[0], "twice")); string(text) != "2" {
		t.Errorf("%q, %v", text, err)
	}
	if state := s.LayerState(diffIDs(t, image)[0].String()); state != peers.Unshared {
		t.Errorf("others are told %q", state)
	}
	if left, _ := os.ReadDir(s.tarsDir()); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestALayerThatLostPartsIsAnError: the other end must not take it for the whole. What only changed, the other end sees by the digest.
func TestALayerThatLostPartsIsAnError(t *testing.T) {
	s := openStore(t, t.TempDir(), "")
	image := imageOf(t, layerTar(t, entry{name: "a", content: "as it was"}))
	stored, err := s.add(image, Image{Tags: []string{"docker.io/library/a:1"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.LayersDir(), stored.Layers[0], "a"), []byte("as it"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteLayer(t.Context(), diffIDs(t, image)[0].String(), io.Discard); !errors.Is(err, errChanged) {
		t.Error(err)
	}
}

// TestPeersAreAskedFirst: a layer of theirs is not fetched from the registry, and one that is not what it should be is.
func TestPeersAreAskedFirst(t *testing.T) {
	content := make([]byte, 300_000)
	for i := range content {
		content[i] = byte(rand.IntN(256))
	}
	base := layerTar(t, entry{name: "base", content: string(content)})
	image := imageOf(t, base, layerTar(t, entry{name: "run", content: "#!"}))
	other := openStore(t, t.TempDir(), "")
	if _, err := other.add(image, Image{Tags: []string{"docker.io/library/a:1"}}); err != nil {
		t.Fatal(err)
	}
	given := func(id v1.Hash) (io.ReadCloser, error) {
		var out bytes.Buffer
		err := other.WriteLayer(t.Context(), id.String(), &out)
		return io.NopCloser(&out), err
	}
	none := func(v1.Hash) (io.ReadCloser, error) { return nil, ErrNotFound }
	for what, test := range map[string]struct {
		layer     func(v1.Hash) (io.ReadCloser, error)
		second    func(v1.Hash) (io.ReadCloser, error) // of another node
		fromThere bool
	}{
		"as it should be":              {given, none, true},
		"none":                         {none, none, false},
		"no tar, then as it should be": {func(v1.Hash) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("hello")), nil }, given, true},
		"another layer": {func(v1.Hash) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(layerTar(t, entry{name: "evil", content: "evil", mode: 0o4755}))), nil
		}, none, false},
		"half of it": {func(id v1.Hash) (io.ReadCloser, error) {
			whole, err := given(id)
			return struct {
				io.Reader
				io.Closer
			}{io.LimitReader(whole, 1000), whole}, err
		}, none, false},
		"a tar without an end": {func(id v1.Hash) (io.ReadCloser, error) {
			whole, err := given(id)
			return struct {
				io.Reader
				io.Closer
			}{io.MultiReader(whole, zeros{}), whole}, err
		}, none, false},
		"no tar": {func(v1.Hash) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("hello")), nil }, none, false},
	} {
		t.Run(what, func(t *testing.T) {
			var sent atomic.Int64
			server := httptest.NewServer(counted(registry.New(registry.Logger(log.New(io.Discard, "", 0))), &sent))
			defer server.Close()
			ref, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://") + "/team/app:v1")
			if err != nil {
				t.Fatal(err)
			}
			if err := remote.Write(ref, image); err != nil {
				t.Fatal(err)
			}
			sent.Store(0)
			s := openStore(t, t.TempDir(), "")
			s.limits.tarBytes = 1 << 20
			s.SetLayerPeers(func(ctx context.Context, digest string, _ func(bool)) iter.Seq[io.ReadCloser] {
				id, err := v1.NewHash(digest)
				if err != nil {
					t.Error(err)
				}
				if until, ok := ctx.Deadline(); !ok || time.Until(until) > othersTime {
					t.Error("nothing ends the time for other nodes")
				}
				return func(yield func(io.ReadCloser) bool) {
					for _, layer := range []func(v1.Hash) (io.ReadCloser, error){test.layer, test.second} {
						if content, err := layer(id); err == nil && !yield(content) {
							return
						}
					}
				}
			})
			pulled, err := s.Pull(t.Context(), ref.Name(), Auth{})
			if err != nil {
				t.Fatal(err)
			}
			if got := sent.Load() < int64(len(content)); got != test.fromThere {
				t.Errorf("the registry sent %d bytes", sent.Load())
			}
			if text, err := os.ReadFile(filepath.Join(s.LayersDir(), pulled.Layers[0], "base")); err != nil || !bytes.Equal(text, content) {
				t.Errorf("the file is not as in the image: %v", err)
			}
			if entries, _ := os.ReadDir(filepath.Join(s.LayersDir(), pulled.Layers[0])); len(entries) != 1 {
				t.Errorf("the layer has %v", entries)
			}
			if id := diffIDs(t, image)[0]; s.LayerState(id.String()) != peers.Here {
				t.Error("the next node cannot have it from this one")
			}
		})
	}
}

// TestWhatOthersAreToldOfAFetch: they wait for as long as something comes.
func TestWhatOthersAreToldOfAFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var coming *arrival
		told := func(want peers.State) {
			t.Helper()
			if got := coming.state(); got != want {
				t.Errorf("%q instead of %q", got, want)
			}
		}
		told(peers.None)
		coming = &arrival{}
		told(peers.Wanted)
		coming.claim(true)
		told(peers.Fetching)
		time.Sleep(newsTime + time.Second)
		told(peers.None)
		if _, err := (fetched{io.NopCloser(zeros{}), coming}).Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
		told(peers.Fetching)
		coming.claim(false)
		told(peers.Wanted)
	})
}

// zeros has no end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// FuzzNotes: a layer that is unpacked is handed out as it came, or not at all.
func FuzzNotes(f *testing.F) {
	f.Add([]byte("not a tar"))
	f.Fuzz(func(t *testing.T, layer []byte) {
		s := openStore(t, t.TempDir(), "")
		image := imageOf(t, layer)
		if _, err := s.add(image, Image{Tags: []string{"docker.io/library/a:1"}}); err != nil {
			return
		}
		var out bytes.Buffer
		if id := diffIDs(t, image)[0]; s.LayerState(id.String()) == peers.Here {
			if err := s.WriteLayer(t.Context(), id.String(), &out); err != nil || !bytes.Equal(out.Bytes(), layer) {
				t.Errorf("%v: %d bytes of %d", err, out.Len(), len(layer))
			}
		}
	})
}

// counted adds up what the handler sends.
func counted(handler http.Handler, sent *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(&countingWriter{w, sent}, r) })
}

type countingWriter struct {
	http.ResponseWriter
	sent *atomic.Int64
}

func (w *countingWriter) Write(p []byte) (int, error) {
	w.sent.Add(int64(len(p)))
	return w.ResponseWriter.Write(p)
}
