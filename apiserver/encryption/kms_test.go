package encryption

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/kms/pkg/service"
)

// plugin is a KMS plugin: it wraps keys by writing its own key's name before them.
type plugin struct {
	key   string
	calls atomic.Int64
}

var errOtherKey = errors.New("wrapped by a key that this plugin does not have")

func (p *plugin) Status(context.Context) (*service.StatusResponse, error) {
	return &service.StatusResponse{Version: "v2", Healthz: "ok", KeyID: p.key}, nil
}

func (p *plugin) Encrypt(_ context.Context, _ string, data []byte) (*service.EncryptResponse, error) {
	return &service.EncryptResponse{Ciphertext: append([]byte("any:"), data...), KeyID: p.key}, nil
}

func (p *plugin) Decrypt(_ context.Context, _ string, r *service.DecryptRequest) ([]byte, error) {
	p.calls.Add(1)
	data, ours := bytes.CutPrefix(r.Ciphertext, []byte("any:"))
	if !ours {
		return nil, errOtherKey
	}
	return data, nil
}

// serve runs the plugin on a socket, whose path must be short.
func (p *plugin) serve(t *testing.T) (endpoint string, stop func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "kms")
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	server := service.NewGRPCService(socket, time.Second, p)
	done := make(chan error, 1)
	go func() { done <- server.ListenAndServe() }()
	for { // the file is there before anybody listens
		conn, err := net.Dial("unix", socket)
		if err == nil {
			conn.Close()
			break
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
	}
	stop = func() { _ = os.RemoveAll(dir) }
	t.Cleanup(func() {
		server.Shutdown()
		<-done
		stop()
	})
	return "unix://" + socket, stop
}

func kms(endpoint string) string {
	return fmt.Sprintf("- resources: [secrets]\n  providers:\n  - kms: {apiVersion: v2, name: vault, endpoint: %q, timeout: 1s}\n  - identity: {}\n", endpoint)
}

func TestKMSPlugin(t *testing.T) {
	w := newWorld(t)
	byOwn := seal(t, w.start(), secrets)
	first := &plugin{key: "1"}
	endpoint, _ := first.serve(t)
	w.given(kms(endpoint))
	e := w.start()
	if err := e.CheckPlugins(t.Context()); err != nil {
		t.Fatal(err)
	}
	sealed := seal(t, e, secrets)
	if bytes.Contains(sealed, text) || !bytes.HasPrefix(sealed, []byte("k8s:enc:kms:v2:vault:")) {
		t.Errorf("%q", sealed)
	}
	for what, c := range map[string]struct {
		sealed []byte
		want   string
	}{"its own": {sealed, ""}, "the cluster's": {byOwn, "outdated"}, "nobody's": {text, "outdated"}} {
		if got := open(t, e, secrets, c.sealed); got != c.want {
			t.Errorf("%s: %s", what, got)
		}
	}
	// After a restart the plugin has another key, and still the former one.
	second := &plugin{key: "2"}
	endpoint, _ = second.serve(t)
	w.given(kms(endpoint))
	restarted := w.start()
	for range 3 {
		if got := open(t, restarted, secrets, sealed); got != "outdated" {
			t.Errorf("the former key's: %s", got)
		}
	}
	if n := second.calls.Load(); n != 1 {
		t.Errorf("asked %d times for one key", n)
	}
}

// A plugin that does not answer keeps no server from starting, and is told of.
func TestAKMSPluginThatIsGone(t *testing.T) {
	w := newWorld(t)
	byOwn := seal(t, w.start(), secrets)
	w.given(kms("unix:///nowhere/s"))
	e := w.start()
	if err := e.CheckPlugins(t.Context()); err == nil {
		t.Error("healthy")
	}
	if sealed, err := e.For(secrets).TransformToStorage(t.Context(), text, key); err == nil {
		t.Errorf("written as %q", sealed)
	}
	if got := open(t, e, secrets, byOwn); got != "outdated" {
		t.Errorf("what needs no plugin: %s", got)
	}
	// It is not taken in place of one that works.
	works := newWorld(t)
	works.config.Reload = true
	works.given(rule("secrets", "secretbox", "one"))
	e = works.start()
	works.given(kms("unix:///nowhere/s"))
	if err := e.files.Look(t.Context()); err == nil || e.Generation() != 0 {
		t.Errorf("taken: %v", err)
	}
	if err := works.config.Validate(); err != nil {
		t.Errorf("the file is right: %v", err)
	}
}
