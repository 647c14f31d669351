package apiserver

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
)

// taken is an answer whose connection can be taken over.
type taken struct {
	*httptest.ResponseRecorder
	conn net.Conn
}

func (t taken) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if t.conn == nil {
		return nil, nil, http.ErrNotSupported
	}
	return t.conn, bufio.NewReadWriter(bufio.NewReader(t.conn), bufio.NewWriter(t.conn)), nil
}

func (t taken) CloseNotify() <-chan bool { return nil }

// sink is a connection that takes all.
type sink struct {
	net.Conn
	bytes int
}

func (s *sink) Write(p []byte) (int, error) { s.bytes += len(p); return len(p), nil }
func (s *sink) CloseWrite() error           { return nil }

// TestStreamsPay: on a server with busy processors what streams of a tenant send waits for his time, whether they are answers or have
// taken their connections over. An administrator's do not.
func TestStreamsPay(t *testing.T) {
	for name, send := range map[string]func(http.ResponseWriter, []byte) error{
		"logs": func(w http.ResponseWriter, p []byte) error {
			_, err := w.Write(p)
			return errors.Join(err, http.NewResponseController(w).Flush())
		},
		"exec": func(w http.ResponseWriter, p []byte) error {
			wrapped, _ := responsewriter.WrapForHTTP1Or2(&charged{ResponseWriter: w}).(http.Hijacker) // as that of metrics is
			if wrapped == nil {
				return http.ErrNotSupported
			}
			conn, buffers, err := wrapped.Hijack()
			if err != nil {
				return err
			}
			_, first := buffers.Write(p)
			_, second := conn.Write(p)
			return errors.Join(first, buffers.Flush(), second, conn.(interface{ CloseWrite() error }).CloseWrite())
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := taughtServer(t)
				stream := func(groups ...string) time.Duration {
					h := server.withProcessor(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						for range 100 {
							if err := send(w, make([]byte, 64<<10)); err != nil {
								t.Error(err)
								return
							}
						}
					}))
					ctx := request.WithRequestInfo(t.Context(), &request.RequestInfo{IsResourceRequest: true, Verb: "get", Resource: "pods", Subresource: "log"})
					ctx = request.WithUser(ctx, &user.DefaultInfo{Name: "jane", Groups: groups})
					begun := time.Now()
					h.ServeHTTP(taken{httptest.NewRecorder(), &sink{}}, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody))
					return time.Since(begun)
				}
				if took := stream(); took < 100*time.Millisecond {
					t.Errorf("it took %v", took)
				}
				if took := stream(user.SystemPrivilegedGroup); took != 0 {
					t.Errorf("an administrator's took %v", took)
				}
			})
		})
	}
}

// taughtServer is a busyServer that has learnt what a request costs.
func taughtServer(t *testing.T) *Server {
	server := busyServer(t)
	for range 100 {
		askFrom(t, server, adminConnection(t), "192.0.2.1:5000")
	}
	time.Sleep(time.Second)
	askFrom(t, server, adminConnection(t), "192.0.2.1:5000")
	return server
}

// TestEachPartIsPaid: on a server with busy processors what is written in small parts waits for the tenant's time, as lines of a log and
// the events of a watch are: each wakes somebody, however short it is. An answer's end is the same request's, and does not wait.
func TestEachPartIsPaid(t *testing.T) {
	for name, c := range map[string]struct {
		verb, subresource string
		waits             bool
	}{"log": {"get", "log", true}, "watch": {"watch", "", true}, "list": {"list", "", false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := taughtServer(t)
				h := server.withProcessor(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					for range 2000 {
						if _, err := w.Write([]byte("a")); err != nil {
							t.Error(err)
						}
					}
				}))
				ctx := request.WithRequestInfo(t.Context(), &request.RequestInfo{
					IsResourceRequest: true, Verb: c.verb, Resource: "pods", Subresource: c.subresource,
				})
				ctx = request.WithUser(ctx, &user.DefaultInfo{Name: "jane"})
				begun := time.Now()
				h.ServeHTTP(taken{httptest.NewRecorder(), &sink{}}, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody))
				if took := time.Since(begun); (took > 100*time.Millisecond) != c.waits {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}
