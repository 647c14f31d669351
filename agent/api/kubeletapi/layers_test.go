package kubeletapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/setpoint-io/setpoint/agent/runtime/images/peers"
)

// shelf has one layer; it sends half of the layer "broken", and of "waits" nothing before release is closed.
type shelf struct{ begun, release chan struct{} }

func (s shelf) LayerState(digest string) peers.State {
	switch digest {
	case "sha256:none":
		return peers.None
	case "sha256:comes":
		return peers.Fetching
	}
	return peers.Here
}

func (s shelf) WriteLayer(_ context.Context, digest string, w io.Writer) error {
	switch digest {
	case "sha256:waits":
		s.begun <- struct{}{}
		<-s.release
	case "sha256:broken":
		_, _ = io.WriteString(w, "half")
		return errors.New("the disk failed")
	}
	_, err := io.WriteString(w, "whole")
	return err
}

func TestLayers(t *testing.T) {
	layers := shelf{make(chan struct{}, layersMax), make(chan struct{})}
	server := httptest.NewServer(newServer(Config{Layers: layers}).handler())
	t.Cleanup(server.Close)
	ask := func(method, digest string) (int, string, error) {
		request, _ := http.NewRequestWithContext(t.Context(), method, server.URL+LayersPath+digest, nil)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, "", err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text), err
	}
	for _, c := range []struct {
		method, digest string
		code           int
		text           string
		fails          bool
	}{
		{"GET", "sha256:a", 200, "whole", false}, {"HEAD", "sha256:a", 200, "", false},
		{"GET", "sha256:none", 404, "404 page not found\n", false}, {"HEAD", "sha256:none", 404, "", false},
		{"POST", "sha256:a", 405, "Method Not Allowed\n", false}, {"GET", "sha256:broken", 0, "", true},
	} {
		code, text, err := ask(c.method, c.digest)
		if (err != nil) != c.fails || !c.fails && (code != c.code || text != c.text) {
			t.Errorf("%s %s: %d %q %v", c.method, c.digest, code, text, err)
		}
	}
	sent := make(chan int, layersMax)
	for range layersMax {
		go func() {
			code, _, _ := ask("GET", "sha256:waits")
			sent <- code
		}()
		<-layers.begun
	}
	if code, _, err := ask("GET", "sha256:a"); code != http.StatusServiceUnavailable || err != nil {
		t.Errorf("one layer too many: %d, %v", code, err)
	}
	close(layers.release)
	for range layersMax {
		if code := <-sent; code != 200 {
			t.Errorf("one that waited: %d", code)
		}
	}
}

func TestNodesMayAskForLayersOnly(t *testing.T) {
	for path, want := range map[string]bool{"/layers/sha256:a": true, "/layers": false, "/pods": false, "/exec/a/b/c": false, "/layersx": false} {
		if NodesToo(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}
