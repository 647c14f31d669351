package streams

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// One port is opened for all URLs, and none after Close.
func TestURLs(t *testing.T) {
	s := New(nil, slog.New(slog.NewTextHandler(t.Output(), nil)))
	var urls []string
	for range 2 {
		server, err := s.URLs()
		if err != nil {
			t.Fatal(err)
		}
		answer, err := server.GetExec(&runtimeapi.ExecRequest{ContainerId: "c", Cmd: []string{"say"}, Stdout: true})
		if err != nil {
			t.Fatal(err)
		}
		urls = append(urls, answer.Url)
	}
	first, second := hostOf(t, urls[0]), hostOf(t, urls[1])
	if first != second || urls[0] == urls[1] {
		t.Errorf("%q", urls)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get("http://" + first); err == nil {
		t.Error("it still answers")
	}
	if _, err := s.URLs(); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestCloseOfOneThatNeverBegan(t *testing.T) {
	s := New(nil, slog.New(slog.DiscardHandler))
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.URLs(); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func hostOf(t *testing.T, text string) string {
	t.Helper()
	parsed, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Host
}
