package apiserver

import (
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
)

// TestAWatchThatNobodyReadsEnds: its writes fail after stalledTimeout and a look, not before.
func TestAWatchThatNobodyReadsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, _ := newServer(t)
		failed := make(chan error)
		h := server.withShares(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			event := make([]byte, 64<<10)
			for {
				if _, err := w.Write(event); err != nil {
					failed <- err
					return
				}
			}
		}))
		ours, theirs := net.Pipe()
		web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, watchOf(r.Context(), &user.DefaultInfo{Name: "a"}))
		})}
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
