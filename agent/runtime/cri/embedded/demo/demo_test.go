package demo

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// journal is a log that may be read while the server writes.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(data []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(data)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func TestServer(t *testing.T) {
	tests := []struct {
		name, version, path string
		status              int
		body                string
	}{
		{"hello", "v2", "/", 200, "pod-1 v2\n"},
		{"healthy", "v1", "/healthz", 200, "ok\n"},
		{"broken", Broken, "/healthz", 503, "broken on purpose\n"},
		{"bad exit code", "v1", "/exit?code=x", 400, "code must be 0..255\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			log := &journal{}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server := &Server{Version: test.version, PodName: "pod-1", Log: log}
			ended := make(chan error, 1)
			go func() { ended <- server.Run(ctx, listener) }()
			response, err := http.Get("http://" + listener.Addr().String() + test.path)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(response.Body)
			response.Body.Close()
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("server ended with %v", err)
			}
			if response.StatusCode != test.status || string(body) != test.body {
				t.Errorf("%d %q", response.StatusCode, body)
			}
			for _, line := range []string{"started", "GET " + test.path, "stopping"} {
				if !strings.Contains(log.String(), line) {
					t.Errorf("log has no %q:\n%s", line, log)
				}
			}
		})
	}
}

func TestExitAnswersFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code := make(chan int, 1)
		server := &Server{Log: io.Discard, Exit: func(c int) { code <- c }}
		recorder := &answer{header: http.Header{}}
		request, err := http.NewRequest(http.MethodGet, "/exit?code=3", nil)
		if err != nil {
			t.Fatal(err)
		}
		server.Handler().ServeHTTP(recorder, request)
		if !strings.Contains(recorder.body.String(), "exiting with code 3") {
			t.Errorf("answer %q", recorder.body.String())
		}
		time.Sleep(exitDelay)
		synctest.Wait()
		if got := <-code; got != 3 {
			t.Errorf("exit code %d", got)
		}
	})
}

type answer struct {
	header http.Header
	body   strings.Builder
}

func (a *answer) Header() http.Header            { return a.header }
func (a *answer) Write(data []byte) (int, error) { return a.body.Write(data) }
func (a *answer) WriteHeader(int)                {}
