package apiserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/internal/cpushare"
)

// busyServer is one whose processors are always busy, and lets everybody do everything.
func busyServer(t *testing.T) *Server {
	config, begun := serverConfig(t, newSlowLog()), time.Now()
	config.Processor = cpushare.New(func() cpushare.Sample {
		return cpushare.Sample{Ran: time.Since(begun) * time.Duration(runtime.GOMAXPROCS(0))}
	})
	config.Authorizer = authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionAllow, "", nil
	})
	server, _ := startServer(t, config)
	return server
}

// askFrom gets the ConfigMaps from a machine, as an administrator if there is a connection, and says how long that took.
func askFrom(t *testing.T, server *Server, connection *tls.ConnectionState, address string) (*discard, time.Duration) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cmPath+"?resourceVersion=0", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.TLS, r.RemoteAddr = connection, address
	w, begun := &discard{header: http.Header{}}, time.Now()
	server.ServeHTTP(w, r)
	return w, time.Since(begun)
}

// TestWhoAsksTooMuchWaits: on a server with busy processors those who ask without a pause wait, and are refused in the end; another
// machine and the administrator are answered at once.
func TestWhoAsksTooMuchWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := busyServer(t)
		const greedy, modest = "192.0.2.1:5000", "192.0.2.2:5000"
		for range 100 { // of which it learns what one costs
			askFrom(t, server, adminConnection(t), greedy)
		}
		time.Sleep(time.Second)
		var code int
		var took time.Duration
		for range 200 * runtime.GOMAXPROCS(0) {
			var w *discard
			if w, took = askFrom(t, server, nil, greedy); took > 0 {
				code = w.code
				break
			}
		}
		if code != http.StatusOK || took == 0 {
			t.Errorf("%d after %v", code, took)
		}
		for _, c := range []struct {
			connection *tls.ConnectionState
			address    string
		}{{nil, modest}, {adminConnection(t), greedy}} {
			if w, took := askFrom(t, server, c.connection, c.address); w.code != http.StatusOK || took != 0 {
				t.Errorf("%s: %d after %v", c.address, w.code, took)
			}
		}
	})
}

// TestManyAddressesAreOneTenant: on a server with busy processors those who ask without a name wait for the share of one tenant together,
// from however many addresses they come and also if each asks only once. A user and an administrator at one of them are answered at once.
func TestManyAddressesAreOneTenant(t *testing.T) {
	for name, address := range map[string]func(n int) string{
		"all of 127.0.0.0/8":   func(n int) string { return fmt.Sprintf("127.%d.%d.1:5000", n/256, n%256) },
		"one /64":              func(n int) string { return fmt.Sprintf("[2001:db8::%x]:5000", n+1) },
		"many networks of /64": func(n int) string { return fmt.Sprintf("[2001:db8:0:%x::1]:5000", n) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := taughtServer(t)
				waited := 0
				flood := 200 * runtime.GOMAXPROCS(0)
				for n := range flood {
					if _, took := askFrom(t, server, nil, address(n)); took > 0 {
						waited++
					}
				}
				if waited == 0 {
					t.Errorf("none of %d waits", flood)
				}
				if _, took := askFrom(t, server, adminConnection(t), address(0)); took != 0 {
					t.Errorf("an administrator waits %v", took)
				}
				h := server.withProcessor(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
				ctx := request.WithRequestInfo(t.Context(), &request.RequestInfo{IsResourceRequest: true, Verb: "get", Resource: "configmaps"})
				r := httptest.NewRequestWithContext(request.WithUser(ctx, &user.DefaultInfo{Name: "jane"}), http.MethodGet, "/", http.NoBody)
				r.RemoteAddr = address(0)
				begun := time.Now()
				if h.ServeHTTP(httptest.NewRecorder(), r); time.Since(begun) != 0 {
					t.Errorf("a user waits %v", time.Since(begun))
				}
			})
		})
	}
}

// TestProcessorHolder: the accounts of a namespace are one, strangers are known by their machine.
func TestProcessorHolder(t *testing.T) {
	for name, want := range map[string]string{
		"system:serviceaccount:ten:a": "the service accounts of namespace ten", "jane": "user jane",
		user.Anonymous: "whoever asks without a name from 192.0.2.7",
	} {
		r := &http.Request{RemoteAddr: "192.0.2.7:443"}
		if got := processorHolder(r, &user.DefaultInfo{Name: name}); got.Name != want || got.Privileged {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestRequestUnits: what is done and what is answered counts.
func TestRequestUnits(t *testing.T) {
	for _, c := range []struct {
		method string
		stream bool
		want   float64
	}{
		{http.MethodGet, false, 1}, {http.MethodPatch, false, 3}, {http.MethodPost, true, 10},
	} {
		if got := requestUnits(&http.Request{Method: c.method}, c.stream); got != c.want {
			t.Errorf("%v costs %v", c, got)
		}
	}
	begun := time.Now()
	share := cpushare.New(func() cpushare.Sample { return cpushare.Sample{Ran: time.Since(begun)} })
	answer := &charged{ResponseWriter: &discard{header: http.Header{}}, server: &Server{config: Config{Processor: share}}}
	_, _ = answer.Write([]byte(strings.Repeat("a", 4*unitBytes)))
	if answer.units != 4.1 {
		t.Errorf("an answer costs %v", answer.units)
	}
	if _, _ = answer.Write([]byte(strings.Repeat("a", unitBytes))); answer.units != 0 {
		t.Errorf("%v are not charged", answer.units)
	}
}

// TestStreamsMayTakeOver: of what a tenant asks, an upgrade gets a writer that can be taken over, also of a subresource that only an
// aggregated server knows, or of a watch.
func TestStreamsMayTakeOver(t *testing.T) {
	server := &Server{config: Config{Processor: cpushare.New(cpushare.Process())}}
	for _, c := range []struct {
		verb, subresource string
		upgrade, want     bool
	}{{"get", "vnc", true, true}, {"watch", "", true, true}, {"create", "exec", true, true}, {"get", "", false, false}} {
		got := false
		next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, got = w.(http.Hijacker) })
		r := httptest.NewRequest(http.MethodGet, "/apis/x", nil)
		if c.upgrade {
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "websocket")
		}
		ctx := request.WithUser(r.Context(), &user.DefaultInfo{Name: "jane"})
		info := &request.RequestInfo{IsResourceRequest: true, Verb: c.verb, Subresource: c.subresource}
		server.withProcessor(next).ServeHTTP(httptest.NewRecorder(), r.WithContext(request.WithRequestInfo(ctx, info)))
		if got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestHealthDoesNotWait: however much comes from an address.
func TestHealthDoesNotWait(t *testing.T) {
	for path, want := range map[string]bool{
		"/readyz": true, "/livez/ping": true, "/healthz": true, "/version": false, "/readyzzz": false, "/api/v1/healthz": false,
	} {
		if got := aboutHealth(&request.RequestInfo{Path: path}); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
