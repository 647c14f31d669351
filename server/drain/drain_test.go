package drain

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// door accepts connections without sockets.
type door struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.conns:
		return c, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

func (d *door) Close() error   { close(d.closed); return nil }
func (d *door) Addr() net.Addr { return &net.TCPAddr{} }

// world is a server whose requests take as long as their path says; /stream has no end of its own.
type world struct {
	t      *testing.T
	d      *Drain
	server *http.Server
	door   *door
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, d: New(), door: &door{make(chan net.Conn), make(chan struct{})}}
	handler := func(rw http.ResponseWriter, r *http.Request) {
		length, err := time.ParseDuration(r.URL.Path[1:])
		if err != nil {
			<-w.d.Streams().Done()
		} else if !pause(r.Context(), length) {
			rw.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	w.server = &http.Server{
		Handler:     w.d.Count(http.HandlerFunc(handler)),
		BaseContext: func(net.Listener) context.Context { return w.d.Requests() },
	}
	go func() { _ = w.server.Serve(w.door) }()
	return w
}

// outcome is the code of an answer, 0 without one, and when it came.
type outcome struct {
	code int
	took time.Duration
}

func (w *world) ask(path string) <-chan outcome {
	ours, theirs := net.Pipe()
	w.door.conns <- theirs
	answered, start := make(chan outcome, 1), time.Now()
	go func() {
		defer ours.Close()
		_, _ = io.WriteString(ours, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n")
		response, err := http.ReadResponse(bufio.NewReader(ours), nil)
		if err != nil {
			answered <- outcome{0, time.Since(start)}
			return
		}
		answered <- outcome{response.StatusCode, time.Since(start)}
	}()
	synctest.Wait()
	return answered
}

func TestClose(t *testing.T) {
	for name, c := range map[string]struct {
		path      string
		code      int
		took, max time.Duration // of the answer, and of Close
	}{
		"a request finishes":                   {"/4s", 200, 4 * time.Second, 5 * time.Second},
		"a stream ends":                        {"/stream", 200, streamsTimeout, time.Second},
		"a request that takes for ever is cut": {"/1h", 503, requestsTimeout, requestsTimeout + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				if err := w.d.Check(t.Context()); err != nil {
					t.Error(err)
				}
				answered, start := w.ask(c.path), time.Now()
				w.d.Begin()
				if err := w.d.Check(t.Context()); !errors.Is(err, ErrStopping) {
					t.Errorf("ready while it stops: %v", err)
				}
				w.d.Close(w.server)
				if took := time.Since(start); took > c.max {
					t.Errorf("closed after %v", took)
				}
				got := <-answered
				if (got.code != c.code && got.code != 0) || c.code == 200 && got.code != 200 || got.took < c.took {
					t.Errorf("%d after %v, want %d after %v", got.code, got.took, c.code, c.took)
				}
			})
		})
	}
}

func TestNothingRunsNothingWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		synctest.Wait()
		start := time.Now()
		w.d.Close(w.server)
		if took := time.Since(start); took > streamsTimeout {
			t.Errorf("closed after %v", took)
		}
		if w.d.Requests().Err() == nil || w.d.Streams().Err() == nil {
			t.Error("contexts go on")
		}
		synctest.Wait()
	})
}
