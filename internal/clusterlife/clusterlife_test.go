package clusterlife

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// serving is a server of a life, and how often a request got through to it.
type serving struct {
	*httptest.Server
	life    string
	former  []string
	through int
}

func newServer(t *testing.T, life string, former ...string) *serving {
	s := &serving{life: life, former: former}
	s.Server = httptest.NewServer(Guard(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.through++
		_, _ = io.Copy(io.Discard, r.Body)
	}), func() (string, func(string) bool) {
		return s.life, func(life string) bool { return slices.Contains(s.former, life) }
	}))
	t.Cleanup(s.Close)
	return s
}

// agent is one that keeps its pin in a folder, started anew.
func agent(t *testing.T, dir string, log io.Writer) (*Pin, *http.Client) {
	t.Helper()
	pin, err := Open(dir, write, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return pin, &http.Client{Transport: pin.Through(http.DefaultTransport)}
}

func write(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }

func TestAnAgentKeepsToTheLifeThatItHasPinned(t *testing.T) {
	dir := t.TempDir()
	own, other, nameless := newServer(t, "a1"), newServer(t, "b1"), newServer(t, "")
	next := newServer(t, "a2", "a0", "a1")
	for _, step := range []struct {
		what   string
		at     *serving
		passes bool
		pinned string
	}{
		{"before it has pinned one, a server that knows of none", nameless, true, ""},
		{"the first that tells", own, true, "a1"},
		{"the same again", own, true, "a1"},
		{"another", other, false, "a1"},
		{"one that does not know", nameless, false, "a1"},
		{"one that comes of it", next, true, "a2"},
		{"the former one", own, false, "a2"},
	} {
		pin, client := agent(t, dir, t.Output())
		before := step.at.through
		response, err := client.Post(step.at.URL, "text/plain", strings.NewReader("body"))
		if err == nil {
			response.Body.Close()
		}
		if passed := err == nil; passed != step.passes || (step.at.through > before) != step.passes || !passed && !errors.Is(err, ErrOther) {
			t.Errorf("%s: %v, it got through: %v", step.what, err, step.at.through > before)
		}
		if pin.Life() != step.pinned {
			t.Errorf("%s: pinned %q, want %q", step.what, pin.Life(), step.pinned)
		}
	}
}

// TestWhoHasPinnedNothingIsNotTold: kubectl and the like, for whom nothing changes.
func TestWhoHasPinnedNothingIsNotTold(t *testing.T) {
	s := newServer(t, "a1")
	response, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK || response.Header.Get(Header) != "" {
		t.Errorf("%s, %v", response.Status, response.Header)
	}
}

// TestARefusalSaysWhatToDo, once, and repeats no more of a name than it may have.
func TestARefusalSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	var log strings.Builder
	_, client := agent(t, dir, &log)
	own, other := newServer(t, "a1"), newServer(t, "b1")
	for range 3 {
		for _, s := range []*serving{own, other} {
			if response, err := client.Get(s.URL); err == nil {
				response.Body.Close()
			}
		}
	}
	path := filepath.Join(dir, "pki", "life")
	if text := log.String(); strings.Count(text, "another life") != 1 || !strings.Contains(text, "a1") || !strings.Contains(text, "b1") ||
		!strings.Contains(text, "remove "+path) {
		t.Errorf("the log: %s", text)
	}
	request, err := http.NewRequest(http.MethodGet, own.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set(Header, strings.Repeat("x", 10_000))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusMisdirectedRequest || len(text) > 1000 {
		t.Errorf("%s, %d bytes, %v", response.Status, len(text), err)
	}
}

func TestAPinThatCannotBeReadIsNotGuessed(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "pki"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"empty": "", "long": strings.Repeat("x", 1000)} {
		if err := os.WriteFile(filepath.Join(dir, "pki", "life"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, write, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
