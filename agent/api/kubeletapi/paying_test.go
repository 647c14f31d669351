package kubeletapi

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/internal/cpushare"
)

// endless is a connection that takes all, and brings as much as is read.
type endless struct{ net.Conn }

func (endless) Write(p []byte) (int, error) { return len(p), nil }
func (endless) Read(p []byte) (int, error)  { return len(p), nil }

// taken is an answer whose connection can be taken over.
type taken struct{ *httptest.ResponseRecorder }

func (taken) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return endless{}, bufio.NewReadWriter(bufio.NewReader(endless{}), bufio.NewWriter(endless{})), nil
}

// TestStreamsOfANodePay: at the port of a node without a free processor what passes in a stream of a namespace waits for the namespace's
// time, in both directions, and that of others and of kube-system does not.
func TestStreamsOfANodePay(t *testing.T) {
	pass := map[string]func(c net.Conn) error{
		"out": func(c net.Conn) error { _, err := c.Write(make([]byte, 64<<10)); return err },
		"in":  func(c net.Conn) error { _, err := io.ReadFull(c, make([]byte, 64<<10)); return err },
	}
	for name, part := range pass {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, begun := newServer(Config{}), time.Now()
				s.processor = cpushare.New(func() cpushare.Sample {
					return cpushare.Sample{Ran: time.Since(begun) * time.Duration(runtime.GOMAXPROCS(0))}
				})
				took := func(namespace string, parts int) time.Duration {
					r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/exec", http.NoBody)
					r.SetPathValue("namespace", namespace)
					begun := time.Now()
					s.paying(func(w http.ResponseWriter, _ *http.Request) {
						conn, _, err := http.NewResponseController(w).Hijack()
						for range parts {
							if err == nil {
								err = part(conn)
							}
						}
						if err != nil {
							t.Error(err)
						}
					})(taken{httptest.NewRecorder()}, r)
					return time.Since(begun)
				}
				took("ten", 100)
				time.Sleep(time.Second) // until it is known what a unit costs
				took("ten", 100)
				if time.Sleep(100 * time.Millisecond); took("ten", 100) < 50*time.Millisecond {
					t.Error("a flood does not wait")
				}
				if waited := took("shop", 1) + took("kube-system", 100); waited != 0 {
					t.Errorf("others wait %v", waited)
				}
			})
		})
	}
}
