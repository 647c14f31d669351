package removed

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/raftstore/forward"
)

var errWhy = errors.New("server-1 was removed from this cluster: do this")

// serving is a server that was removed, and a client that trusts it.
func serving(t *testing.T) (url string, client *http.Client) {
	t.Helper()
	cluster, err := trust.InitCluster(t.TempDir(), []trust.Server{{Name: "server-1", Endpoint: "127.0.0.1:6443"}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	server, err := cluster.LoadServer("server-1")
	if err != nil {
		t.Fatal(err)
	}
	live, err := trust.NewLive(server)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, listener, live, Handler("server-1", errWhy), slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	config, err := cluster.Admin.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return "https://" + listener.Addr().String(), &http.Client{Transport: transport}
}

// TestEverybodyIsTold, whatever he asks for, and gets nothing else.
func TestEverybodyIsTold(t *testing.T) {
	url, client := serving(t)
	for _, ask := range []struct{ method, path, contentType string }{
		{"GET", "/", ""}, {"GET", "/livez", ""}, {"GET", "/api/v1/pods?watch=1", ""}, {"POST", "/api/v1/namespaces/a/pods", "application/json"},
		{"DELETE", "/api/v1/namespaces/a/pods/b", ""}, {"POST", "/setpoint.v1.JoinService/Join", "application/json"}, {"CONNECT", "/x", ""},
		{"PATCH", "/apis/apps/v1/namespaces/a/deployments/b", "application/merge-patch+json"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), ask.method, url+ask.path, strings.NewReader(`{"kind":"Pod"}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", ask.contentType)
		response, err := client.Do(request)
		if err != nil {
			t.Errorf("%s %s: %v", ask.method, ask.path, err)
			continue
		}
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get(Header) != "server-1" ||
			!strings.Contains(string(text), `"kind":"Status"`) || !strings.Contains(string(text), `"message":"`+errWhy.Error()+`"`) {
			t.Errorf("%s %s: %d %s", ask.method, ask.path, response.StatusCode, text)
		}
	}
}

// TestOtherServersAreTold in their own words.
func TestOtherServersAreTold(t *testing.T) {
	url, client := serving(t)
	peers := forward.NewClient(func(string, string) (*http.Client, string) { return client, url })
	if _, err := peers.Status(t.Context(), forward.Peer{ID: "server-1"}); err == nil || !strings.Contains(err.Error(), errWhy.Error()) {
		t.Errorf("status: %v", err)
	}
	err := peers.ChangeMembers(t.Context(), forward.Peer{ID: "server-1"}, forward.Change{Kind: forward.Admit})
	if !errors.Is(err, forward.ErrNotLeading) || !strings.Contains(err.Error(), errWhy.Error()) {
		t.Errorf("a change: %v", err)
	}
}

func TestTold(t *testing.T) {
	for body, want := range map[string]string{
		`{"message":"a was removed: do this"}`: "a was removed: do this", "": "a was removed from this cluster", "<": "a was removed from this cluster",
	} {
		err := Told(&http.Response{Header: http.Header{Header: {"a"}}, Body: io.NopCloser(strings.NewReader(body))})
		if told, ok := errors.AsType[*Error](err); !ok || told.Name != "a" || told.Error() != want {
			t.Errorf("%q: %v", body, err)
		}
	}
	if err := Told(&http.Response{Header: http.Header{}}); err != nil {
		t.Error(err)
	}
}

// TestNote goes with the marks of the store.
func TestNote(t *testing.T) {
	dir := t.TempDir()
	if err := Note(dir); err == nil {
		t.Error("a note where there is no data")
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "state-marker"), 0o700), Note(dir), Note(dir)); err != nil {
		t.Fatal(err)
	}
	if noted, err := Noted(dir); !noted || err != nil {
		t.Errorf("noted: %v, %v", noted, err)
	}
	if err := errors.Join(Forget(dir), Forget(dir)); err != nil {
		t.Error(err)
	}
	if noted, err := Noted(dir); noted || err != nil {
		t.Errorf("noted: %v, %v", noted, err)
	}
}
