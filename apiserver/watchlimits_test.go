package apiserver

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// watchOf is a request to watch something, as the chain hands it on.
func watchOf(ctx context.Context, name string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, cmPath+"?watch=1", nil)
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{IsResourceRequest: true, Verb: "watch"})
	who := &user.DefaultInfo{Name: name}
	if strings.HasPrefix(name, "system:node:") {
		who.Groups = []string{user.NodesGroup}
	}
	return r.WithContext(request.WithUser(ctx, who))
}

func TestWatchesOfAUserAreBounded(t *testing.T) {
	server, _ := newServer(t)
	end, entered := make(chan struct{}), make(chan struct{})
	h := server.withWatchLimits(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-end
	}), 2, 3)
	ended := make(chan struct{})
	open := func(name string) {
		go func() {
			h.ServeHTTP(httptest.NewRecorder(), watchOf(t.Context(), name))
			ended <- struct{}{}
		}()
		<-entered
	}
	open("a")
	open("a")
	refuse := func(name, why string) {
		t.Helper()
		refused := httptest.NewRecorder()
		h.ServeHTTP(refused, watchOf(t.Context(), name))
		if refused.Code != http.StatusTooManyRequests || refused.Header().Get("Retry-After") == "" || !strings.Contains(refused.Body.String(), why) {
			t.Errorf("%s: %d %v %s", name, refused.Code, refused.Header(), refused.Body)
		}
	}
	refuse("a", "too many watches of this user are open")
	open("b") // others are not affected
	refuse("c", "too many watches are open on this server")
	open("system:node:n") // nodes get on
	open("system:node:n")
	refuse("system:node:n", "of this user")
	close(end)
	for range 5 {
		<-ended
	}
	open("a")
	<-ended
}

// TestAWatchThatNobodyReadsEnds: its writes fail after stalledTimeout and a look, not before.
func TestAWatchThatNobodyReadsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, _ := newServer(t)
		failed := make(chan error)
		h := server.withWatchLimits(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			event := make([]byte, 64<<10)
			for {
				if _, err := w.Write(event); err != nil {
					failed <- err
					return
				}
			}
		}), 1, 1)
		ours, theirs := net.Pipe()
		web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, watchOf(r.Context(), "a")) })}
		go func() { _ = web.Serve(&oneConnection{conn: theirs, closed: make(chan struct{})}) }()
		defer web.Close()
		if _, err := io.WriteString(ours, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		start := make([]byte, 128<<10)
		if _, err := io.ReadFull(ours, start); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		err := <-failed
		if took := time.Since(before); err == nil || took < stalledTimeout || took > stalledTimeout+stalledInterval {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// oneConnection is a listener that has accepted all it will.
type oneConnection struct {
	conn   net.Conn
	closed chan struct{}
}

func (l *oneConnection) Accept() (net.Conn, error) {
	if conn := l.conn; conn != nil {
		l.conn = nil
		return conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConnection) Close() error {
	close(l.closed)
	return nil
}

func (l *oneConnection) Addr() net.Addr { return &net.TCPAddr{} }
