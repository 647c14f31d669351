package registration_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/agent/base/registration"
	"github.com/setpoint-io/setpoint/agent/volumes/csi/csitest"
)

// handler tells what it is asked.
type handler struct {
	heard   chan string
	refuses error
}

func (h *handler) Validate(string, string, []string) error { return h.refuses }

func (h *handler) Register(_ context.Context, name, endpoint string, versions []string) error {
	h.heard <- "register " + name + " " + filepath.Base(endpoint) + " " + strings.Join(versions, ",")
	return nil
}

func (h *handler) Deregister(name, _ string) { h.heard <- "deregister " + name }

// watching runs over a folder of the test.
func watching(t *testing.T, h *handler) (dir string, end func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "reg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- registration.Run(ctx, registration.Config{
			Dir: dir, Handlers: map[string]registration.Handler{"CSIPlugin": h}, Logger: slog.New(slog.DiscardHandler)})
	}()
	ended := false
	end = func() {
		if cancel(); !ended {
			ended = true
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(end)
	return dir, end
}

func hears(t *testing.T, h *handler, want string) {
	t.Helper()
	if got := <-h.heard; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}

func TestPluginsComeAndGo(t *testing.T) {
	h := &handler{heard: make(chan string, 10)}
	dir, end := watching(t, h)
	first := csitest.NewRegistrar("a", "/there/csi.sock")
	stop := first.Serve(t, filepath.Join(dir, "a-reg.sock"))
	hears(t, h, "register a csi.sock 1.0.0")
	if s := <-first.Told; !s.PluginRegistered {
		t.Errorf("the plugin heard %v", s)
	}
	stop() // which removes the socket
	hears(t, h, "deregister a")

	sub := filepath.Join(dir, "sub")
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	csitest.NewRegistrar("b", "").Serve(t, filepath.Join(sub, "b.sock"))
	hears(t, h, "register b b.sock 1.0.0")
	end()
	select {
	case got := <-h.heard:
		t.Errorf("at the end of the agent: %s", got)
	default:
	}
}

func TestASocketThatIsMadeAnew(t *testing.T) {
	h := &handler{heard: make(chan string, 10)}
	dir, _ := watching(t, h)
	path := filepath.Join(dir, "a.sock")
	csitest.NewRegistrar("a", "/one").Serve(t, path)
	hears(t, h, "register a one 1.0.0")
	next := filepath.Join(dir, ".next")
	csitest.NewRegistrar("a", "/two").Serve(t, next)
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
	hears(t, h, "deregister a")
	hears(t, h, "register a two 1.0.0")
}

func TestWhatIsNoDriver(t *testing.T) {
	h := &handler{heard: make(chan string, 10), refuses: errors.New("no")}
	dir, _ := watching(t, h)
	refused := csitest.NewRegistrar("a", "/one")
	refused.Serve(t, filepath.Join(dir, "a.sock"))
	if s := <-refused.Told; s.PluginRegistered || s.Error != "RegisterPlugin error -- plugin validation failed with err: no" {
		t.Error(s)
	}
	other := csitest.NewRegistrar("a", "/one")
	other.Info.Type = "DRAPlugin"
	other.Serve(t, filepath.Join(dir, "dra.sock"))
	if s := <-other.Told; s.PluginRegistered || !strings.Contains(s.Error, "no handler registered for plugin type: DRAPlugin at socket") {
		t.Error(s)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestAPluginThatHangs keeps no other one waiting.
func TestAPluginThatHangs(t *testing.T) {
	h := &handler{heard: make(chan string, 10)}
	dir, _ := watching(t, h)
	hung := csitest.NewRegistrar("hung", "/one")
	hung.Hang = true
	hung.Serve(t, filepath.Join(dir, "a.sock"))
	csitest.NewRegistrar("b", "/two").Serve(t, filepath.Join(dir, "b.sock"))
	hears(t, h, "register b two 1.0.0")
}
