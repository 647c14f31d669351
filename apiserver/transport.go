package apiserver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// Caller is who speaks through an in-process transport.
type Caller struct {
	User user.Info
	// Origin returns what to record with a write beside the user: the fence of the
	// leadership and the cause of a reaction. May be nil.
	Origin func(ctx context.Context) storage.Origin
}

// Transport returns a transport that calls this server without a socket. The
// caller needs no credentials: it is the same process.
func (s *Server) Transport(c Caller) http.RoundTripper { return &transport{server: s, caller: c} }

// EndingWith returns a transport whose requests end with ctx too, for the calls of
// libraries that pass no context of their own. Its use ends with ctx: then no answer is
// passed on, since a client would take one that says "later" for a reason to try again, for seconds.
func EndingWith(ctx context.Context, next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		both, cancel := context.WithCancel(r.Context())
		context.AfterFunc(ctx, cancel)
		response, err := next.RoundTrip(r.WithContext(both))
		if err == nil && ctx.Err() != nil {
			_ = response.Body.Close() // nobody reads it
			return nil, ctx.Err()
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type transport struct {
	server *Server
	caller Caller
}

type callerKey struct{}

// RoundTrip implements http.RoundTripper. The handler runs in its own goroutine
// and the response body streams, so that watches work.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), callerKey{}, t.caller.User))
	if t.caller.Origin != nil {
		ctx = storage.WithOrigin(ctx, t.caller.Origin(r.Context()))
	}
	in := r.Clone(served(ctx, r.Method))
	if in.Body == nil {
		in.Body = http.NoBody
	}
	in.RequestURI = in.URL.RequestURI()
	body, pipe := io.Pipe()
	w := &responseWriter{header: http.Header{}, pipe: pipe, ready: make(chan struct{})}
	go func() {
		defer w.end()
		t.server.ServeHTTP(w, in)
	}()
	select {
	case <-w.ready:
		return w.response(r, &cancelBody{body, cancel}), nil
	case <-ctx.Done():
		cancel()
		_ = body.Close()
		return nil, ctx.Err()
	}
}

// served is the context of the handler: a write is finished although whoever asked for it has gone, since it may
// have begun. The chain gives it a deadline, and a store that stops ends it.
func served(asked context.Context, method string) context.Context {
	if method == http.MethodGet || method == http.MethodHead {
		return asked
	}
	return context.WithoutCancel(asked)
}

// cancelBody ends the handler when the client closes the response.
type cancelBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *cancelBody) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}

// responseWriter is the server's side of an in-process response.
type responseWriter struct {
	header http.Header
	pipe   *io.PipeWriter
	once   sync.Once
	status int
	sent   http.Header
	ready  chan struct{} // closed with the header
}

func (w *responseWriter) Header() http.Header { return w.header }

func (w *responseWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.ready)
	})
}

func (w *responseWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	n, err := w.pipe.Write(b)
	if errors.Is(err, io.ErrClosedPipe) {
		return len(b), nil // the client has gone; the context, not an error, ends the handler
	}
	return n, err
}

// Flush implements http.Flusher: the pipe holds nothing back.
func (w *responseWriter) Flush() { w.WriteHeader(http.StatusOK) }

// CloseNotify is there for upstream's wrappers, which pass Flush on only together with
// it. Nobody asks it: the context ends with the client.
func (w *responseWriter) CloseNotify() <-chan bool { return nil }

// SetReadDeadline lets http.ResponseController succeed: the request came whole.
func (w *responseWriter) SetReadDeadline(time.Time) error { return nil }

// end closes the response; a handler that gave up in its middle breaks it, as a
// server with a socket would.
func (w *responseWriter) end() {
	err := io.EOF
	if cause := recover(); cause != nil {
		if stopped, ok := cause.(error); !ok || !errors.Is(stopped, http.ErrAbortHandler) {
			panic(cause)
		}
		err = io.ErrUnexpectedEOF
	}
	w.WriteHeader(http.StatusOK)
	_ = w.pipe.CloseWithError(err)
}

func (w *responseWriter) response(r *http.Request, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: w.status, Status: http.StatusText(w.status), Header: w.sent, Body: body, Request: r,
		Proto: "HTTP/2.0", ProtoMajor: 2, ContentLength: -1,
	}
}

// authenticator knows in-process callers; everybody else shows who he is. Whoever calls a
// service that lets everybody in need not, whatever the API says to those without a name.
func (s *Server) authenticator() authenticator.Request {
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		if u, ok := r.Context().Value(callerKey{}).(user.Info); ok {
			return &authenticator.Response{User: u}, true, nil
		}
		response, known, err := s.authenticateOnce(r)
		if whyNobody(err) != nil {
			return nil, false, nil // upstream's filter would log each
		}
		if known || err != nil || !s.letsEverybodyIn(r.URL.Path) {
			return response, known, err
		}
		return &authenticator.Response{User: &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}}, true, nil
	})
}

func (s *Server) letsEverybodyIn(path string) bool {
	service := s.service(path)
	return service != nil && service.Allow == nil
}
