package router

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/agent/net/router/table"
)

// endpoints are addresses of pods that stand in for test programs.
var (
	gone  = netip.MustParseAddrPort("10.0.0.1:80")
	gone2 = netip.MustParseAddrPort("10.0.0.2:80")
	fresh = netip.MustParseAddrPort("10.0.0.3:80")
)

// tries are the connections of one request: where to, and how long each may take.
type tries struct {
	mu      sync.Mutex
	to      []netip.AddrPort
	limits  []time.Duration
	servers map[netip.AddrPort]string
}

func (d *tries) dial(ctx context.Context, network, address string) (net.Conn, error) {
	at := netip.MustParseAddrPort(address)
	d.mu.Lock()
	d.to, d.limits = append(d.to, at), append(d.limits, connectTime(ctx))
	server := d.servers[at]
	d.mu.Unlock()
	if server == "" {
		return nil, &dialError{errors.New("nobody is there")}
	}
	return dial(ctx, network, server)
}

// roundTrip asks a backend that had these endpoints when the route was found, and has others now.
func (d *tries) roundTrip(t *testing.T, method, body string, had, has []netip.AddrPort) (*http.Response, error) {
	t.Helper()
	backend := &table.Backend{Protocol: table.HTTP, Endpoints: had}
	transports := newTransports(d.dial, func(*table.Backend) []netip.AddrPort { return has })
	t.Cleanup(transports.plain[table.HTTP].CloseIdleConnections)
	route := &table.Route{Backend: backend, Options: table.Options{ConnectTimeout: time.Minute, ReadTimeout: time.Minute}}
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	req := httptest.NewRequest(method, "http://a.com/", content)
	req.RequestURI = ""
	return transports.RoundTrip(req.WithContext(context.WithValue(t.Context(), routeKey{}, route)))
}

// hangingUp closes each connection once it has read a request, and counts them.
func hangingUp(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = conn.Close()
		}
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func answering(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// TestRetriesGoToEndpointsOfNow: those of the route are all gone.
func TestRetriesGoToEndpointsOfNow(t *testing.T) {
	d := &tries{servers: map[netip.AddrPort]string{fresh: answering(t)}}
	answer, err := d.roundTrip(t, http.MethodPost, "x", []netip.AddrPort{gone, gone2}, []netip.AddrPort{fresh})
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if len(d.to) != 2 || d.to[1] != fresh {
		t.Errorf("tried %v", d.to)
	}
}

// TestTimeToConnect is short while another endpoint can be asked, and the Ingress's for the only one and for the last try.
func TestTimeToConnect(t *testing.T) {
	for name, test := range map[string]struct {
		had, has []netip.AddrPort
		want     []time.Duration
	}{
		"the only one":                  {[]netip.AddrPort{gone}, []netip.AddrPort{gone}, []time.Duration{time.Minute}},
		"the last one":                  {[]netip.AddrPort{gone, gone2}, []netip.AddrPort{gone, gone2}, []time.Duration{othersConnectTime, time.Minute}},
		"the last try":                  {[]netip.AddrPort{gone, gone2}, many(9), []time.Duration{othersConnectTime, othersConnectTime, time.Minute}},
		"no endpoint any more":          {[]netip.AddrPort{gone, gone2}, nil, []time.Duration{othersConnectTime}},
		"the only one, another is here": {[]netip.AddrPort{gone}, []netip.AddrPort{gone, gone2}, []time.Duration{time.Minute, time.Minute}},
	} {
		d := &tries{}
		if answer, err := d.roundTrip(t, http.MethodGet, "", test.had, test.has); err == nil {
			answer.Body.Close()
			t.Errorf("%s: answered", name)
		}
		if !slices.Equal(d.limits, test.want) {
			t.Errorf("%s: %v, want %v", name, d.limits, test.want)
		}
	}
}

func many(n byte) (all []netip.AddrPort) {
	for i := range n {
		all = append(all, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 1, i}), 80))
	}
	return all
}

// TestWhatIsSentTwice: a request that asks for nothing but an answer, when a connection ends without one.
func TestWhatIsSentTwice(t *testing.T) {
	for _, test := range []struct {
		method, body string
		again        bool
	}{
		{"GET", "", true}, {"HEAD", "", true}, {"OPTIONS", "", true},
		{"GET", "x", false}, {"POST", "", false}, {"PUT", "", false}, {"DELETE", "", false}, {"PATCH", "x", false},
	} {
		d := &tries{servers: map[netip.AddrPort]string{gone: hangingUp(t), fresh: answering(t)}}
		answer, err := d.roundTrip(t, test.method, test.body, []netip.AddrPort{gone}, []netip.AddrPort{gone, fresh})
		if err == nil {
			answer.Body.Close()
		}
		if (err == nil) != test.again {
			t.Errorf("%s %q: %v after %v, sent again should be %v", test.method, test.body, err, d.to, test.again)
		}
	}
}
