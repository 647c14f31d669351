package peers

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// node answers as an agent with the layer "has", or without it.
func node(t *testing.T, has string, content []byte, answered *atomic.Int64) string {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/layers/"+has {
			http.NotFound(w, r)
			return
		}
		if r.Method == http.MethodGet {
			answered.Add(1)
			_, _ = w.Write(content)
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "https://")
}

func client(t *testing.T, nodes ...string) *Client {
	t.Helper()
	c := New(Config{Nodes: func() []string { return nodes }, Path: "/layers/", TLS: &tls.Config{InsecureSkipVerify: true}})
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

// TestANodeThatHasIt is found among others, and it alone sends.
func TestANodeThatHasIt(t *testing.T) {
	var answered atomic.Int64
	content := bytes.Repeat([]byte("layer"), 100_000)
	refusing := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", 503) }))
	gone := strings.TrimPrefix(refusing.URL, "https://")
	busy := httptest.NewTLSServer(refusing.Config.Handler)
	t.Cleanup(busy.Close)
	refusing.Close()
	c := client(t, node(t, "sha256:b", nil, &answered), gone, strings.TrimPrefix(busy.URL, "https://"),
		node(t, "sha256:a", content, &answered), node(t, "sha256:a", content, &answered))
	layer, err := c.Layer(t.Context(), "sha256:a")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(layer)
	if err := errors.Join(err, layer.Close()); err != nil || !bytes.Equal(got, content) || answered.Load() != 1 {
		t.Errorf("%v; %d bytes, %d nodes sent it", err, len(got), answered.Load())
	}
}

func TestNobodyHasIt(t *testing.T) {
	var answered atomic.Int64
	for what, c := range map[string]*Client{"no nodes": client(t), "others": client(t, node(t, "sha256:b", nil, &answered))} {
		if _, err := c.Layer(t.Context(), "sha256:a"); !errors.Is(err, errNobody) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestANodeThatEndsInTheMiddle is an error and no end.
func TestANodeThatEndsInTheMiddle(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte("half"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(server.Close)
	layer, err := client(t, strings.TrimPrefix(server.URL, "https://")).Layer(t.Context(), "sha256:a")
	if err != nil {
		t.Fatal(err)
	}
	defer layer.Close()
	if got, err := io.ReadAll(layer); err == nil || string(got) != "half" {
		t.Errorf("%q, %v", got, err)
	}
}
