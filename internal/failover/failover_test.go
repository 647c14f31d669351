package failover

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/internal/clusterlife"
)

// servers answer what the test says of their hosts.
type servers map[string]int

// RoundTrip answers with the code of the host; 0 is a server that is not reached.
func (s servers) RoundTrip(r *http.Request) (*http.Response, error) {
	code := s[r.URL.Host]
	switch code {
	case 0:
		return nil, &net.OpError{Op: "dial"}
	case http.StatusMisdirectedRequest: // as a transport with a pin has it
		return nil, fmt.Errorf("%s: %w", r.URL.Host, clusterlife.ErrOther)
	}
	return &http.Response{StatusCode: code, Request: r, Body: io.NopCloser(strings.NewReader(""))}, nil
}

// TestWhoCannotServeIsLeft: the next request goes elsewhere, and stays where it is answered.
func TestWhoCannotServeIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		codes servers
		want  []string // where four requests are answered
	}{
		"all serve":               {servers{"a": 200, "b": 200, "c": 200}, []string{"a", "a", "a", "a"}},
		"a refusal is an answer":  {servers{"a": 403, "b": 200, "c": 200}, []string{"a", "a", "a", "a"}},
		"no leader":               {servers{"a": 503, "b": 200, "c": 200}, []string{"a", "b", "b", "b"}},
		"no leader in time":       {servers{"a": 504, "b": 503, "c": 200}, []string{"a", "b", "c", "c"}},
		"not reached":             {servers{"a": 0, "b": 503, "c": 200}, []string{"b", "c", "c", "c"}},
		"another life":            {servers{"a": 421, "b": 200, "c": 200}, []string{"b", "b", "b", "b"}},
		"another life, no leader": {servers{"a": 421, "b": 503, "c": 200}, []string{"b", "c", "c", "c"}},
		"nobody has a leader":     {servers{"a": 503, "b": 503, "c": 503}, []string{"a", "b", "c", "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Failover{servers: func() []string { return []string{"a", "b", "c"} }, current: "a", transport: c.codes}
			var got []string
			for range 4 {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://any/", nil)
				if err != nil {
					t.Fatal(err)
				}
				response, err := f.RoundTrip(request)
				if err != nil {
					t.Fatal(err)
				}
				_ = response.Body.Close()
				got = append(got, response.Request.URL.Host)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("answered by %v, want %v", got, c.want)
			}
		})
	}
}

// TestServersComeAndGo: requests go to the servers that there are when they are made.
func TestServersComeAndGo(t *testing.T) {
	now := []string{"a"}
	f := &Failover{servers: func() []string { return now }, transport: servers{"a": 200, "b": 200, "c": 503, "d": 200}}
	for _, step := range []struct{ servers, want string }{
		{"a", "a"}, {"a,b", "a"}, {"b", "b"}, {"c", "c"}, {"d,c", "c"}, {"d,c", "d"}, {"b,c,d", "d"},
	} {
		now = strings.Split(step.servers, ",")
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://any/", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := f.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got := response.Request.URL.Host; got != step.want {
			t.Errorf("of %s: answered by %s, want %s", step.servers, got, step.want)
		}
	}
}

// TestAgentsBeginAtAnyServer: a thousand agents that begin at the same one would leave it together too.
func TestAgentsBeginAtAnyServer(t *testing.T) {
	begun := map[string]bool{}
	for range 200 {
		begun[new(Failover).at([]string{"a", "b", "c"})] = true
	}
	if len(begun) != 3 {
		t.Errorf("of three servers some are never the first: %v", begun)
	}
}
