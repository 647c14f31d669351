package peers

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// wire is the network of a bubble: what each address answers. Others refuse connections.
type wire map[string]func(*http.Request) (*http.Response, error)

const roundTrip = time.Millisecond

// RoundTrip implements http.RoundTripper.
func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(roundTrip)
	if answer := w[r.URL.Host]; answer != nil {
		return answer(r)
	}
	return nil, errors.New("connection refused")
}

// says is an answer without content, or with that of a layer.
func says(status int, state State, content io.Reader) (*http.Response, error) {
	if content == nil {
		content = http.NoBody
	}
	return &http.Response{StatusCode: status, Header: http.Header{StateHeader: {string(state)}}, Body: io.NopCloser(content)}, nil
}

// hang answers when nobody waits any more.
func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// stalled sends nothing for as long as somebody waits.
type stalled struct{ ctx context.Context }

func (s stalled) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func newClient(w http.RoundTripper, self string, others ...string) *Client {
	c := New(Config{Nodes: func() (string, []string) { return self, slices.Clone(others) }, Path: "/layers/"})
	c.http.Transport = w
	return c
}

// names are a node that comes before self for the digest, and one that comes after it.
func names(t *testing.T, digest, self string) (before, after string) {
	t.Helper()
	for _, a := range inOrder(digest, self, []string{"a:1", "b:1", "c:1", "d:1", "e:1", "f:1", "g:1", "h:1"}) {
		if a.first {
			before = a.node
		} else {
			after = a.node
		}
	}
	if before == "" || after == "" {
		t.Fatal("choose another name")
	}
	return before, after
}

// TestOutcomes has one other node, which says something at first, and later something else.
func TestOutcomes(t *testing.T) {
	const digest, self, later = "sha256:a", "self:1", 10 * time.Second
	before, after := names(t, digest, self)
	here := func(r *http.Request) (*http.Response, error) { return says(200, Here, strings.NewReader("layer")) }
	state := func(s State) func(*http.Request) (*http.Response, error) {
		return func(*http.Request) (*http.Response, error) { return says(404, s, nil) }
	}
	sends := func(content func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
		return func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodHead {
				return says(200, Here, nil)
			}
			return content(r)
		}
	}
	const soon, atOnce = pauseMax + 3*roundTrip, 3 * roundTrip
	for name, test := range map[string]struct {
		node          string
		first, second func(*http.Request) (*http.Response, error)
		takes         bool // what comes is "layer"
		took          time.Duration
	}{
		"has it":                     {after, here, here, true, atOnce},
		"knows nothing":              {before, state(None), here, false, atOnce},
		"is gone":                    {before, nil, nil, false, atOnce},
		"says nothing":               {before, hang, here, false, askTime + atOnce},
		"fetches it":                 {before, state(Fetching), here, true, later + soon},
		"fetches it, comes after":    {after, state(Fetching), here, true, later + soon},
		"fetches and fails":          {after, state(Fetching), state(None), false, later + soon},
		"fetches and dies":           {after, state(Fetching), nil, false, later + soon},
		"fetches and hangs":          {after, state(Fetching), hang, false, later + soon + askTime},
		"fetches what is not shared": {after, state(Fetching), state(Unshared), false, later + soon},
		"wants it too":               {before, state(Wanted), here, true, later + soon},
		"wants it too, comes after":  {after, state(Wanted), here, false, atOnce},
		"has it, and is busy":        {after, func(*http.Request) (*http.Response, error) { return says(503, Here, nil) }, here, true, later + soon},
		"is busy in between":         {after, sends(func(*http.Request) (*http.Response, error) { return says(503, Here, nil) }), here, true, later + soon},
		"says that it has it":        {after, sends(state(None)), here, false, 2 * atOnce},
		"sends nothing":              {after, sends(hang), here, false, stallTime + 2*atOnce},
		"stops": {after, sends(func(r *http.Request) (*http.Response, error) { return says(200, Here, stalled{r.Context()}) }), here, false,
			stallTime + 2*atOnce},
		"fetches for ever":       {after, state(Fetching), state(Fetching), false, time.Minute},
		"says what nobody does":  {before, state("perhaps"), here, false, atOnce},
		"sends something wrong":  {after, sends(func(*http.Request) (*http.Response, error) { return says(200, Here, strings.NewReader("evil")) }), here, false, 2 * atOnce},
		"leads to somebody else": {after, sends(func(*http.Request) (*http.Response, error) { return redirect(), nil }), here, false, 2 * atOnce},
		"is busy for ever":       {after, sends(func(*http.Request) (*http.Response, error) { return says(503, Here, nil) }), sends(func(*http.Request) (*http.Response, error) { return says(503, Here, nil) }), false, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				w := wire{"elsewhere:1": func(*http.Request) (*http.Response, error) { t.Error("asked"); return says(200, Here, nil) }}
				w[test.node] = func(r *http.Request) (*http.Response, error) {
					answer := test.first
					if time.Since(began) >= later {
						answer = test.second
					}
					if answer == nil {
						return nil, errors.New("connection refused")
					}
					return answer(r)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				claimed, takes := false, false
				for content := range newClient(w, self, test.node).Layer(ctx, digest, func(fetching bool) { claimed = fetching }) {
					got, err := io.ReadAll(content)
					if content.Close(); err == nil && string(got) == "layer" {
						takes = true
						break
					}
				}
				if took := time.Since(began); takes != test.takes || took > test.took {
					t.Errorf("takes it: %v, after %s", takes, took)
				}
				if claimed != (!takes && ctx.Err() == nil) {
					t.Errorf("says that it fetches: %v", claimed)
				}
			})
		})
	}
}

func redirect() *http.Response {
	answer, _ := says(http.StatusFound, Here, nil)
	answer.Header.Set("Location", "https://elsewhere:1/")
	return answer
}

// TestAFirstFetchIsNotSlow: nobody knows of the layer, so it takes two questions to those that come first.
func TestAFirstFetchIsNotSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		w, nodes := wire{}, []string{}
		for i := range 3 * askedMax {
			node := string(rune('A'+i)) + ":1"
			nodes = append(nodes, node)
			w[node] = func(*http.Request) (*http.Response, error) {
				asked.Add(1)
				return says(404, None, nil)
			}
		}
		began := time.Now()
		for range newClient(w, "self:1", nodes...).Layer(t.Context(), "sha256:a", func(bool) {}) {
			t.Error("somebody has it")
		}
		if took := time.Since(began); took != 2*roundTrip || asked.Load() != 2*askedMax {
			t.Errorf("%d questions took %s", asked.Load(), took)
		}
	})
}

// TestASilentNodeIsWaitedForOnce, however many layers there are.
func TestASilentNodeIsWaitedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(wire{"silent:1": hang}, "self:1", "silent:1")
		began := time.Now()
		for _, digest := range []string{"sha256:a", "sha256:b", "sha256:c"} {
			for range c.Layer(t.Context(), digest, func(bool) {}) {
				t.Error("it said something")
			}
		}
		if took := time.Since(began); took > askTime+2*roundTrip {
			t.Errorf("took %s", took)
		}
		time.Sleep(silenceTime)
		if c.isSilent("silent:1") {
			t.Error("it is never asked again")
		}
	})
}

func TestDecide(t *testing.T) {
	early, late := func(s State) answer { return answer{"early:1", s, true} }, func(s State) answer { return answer{"late:1", s, false} }
	for _, test := range []struct {
		answers          []answer
		wait, waitClaims bool // before and after this node has said that it fetches
		node             string
	}{
		{nil, false, false, ""},
		{[]answer{early(None), late(None)}, false, false, ""},
		{[]answer{early(Fetching), late(Here)}, false, false, "late:1"},
		{[]answer{early(Fetching), late(Unshared)}, false, false, ""},
		{[]answer{early(Wanted)}, true, true, ""}, {[]answer{late(Wanted)}, false, false, ""},
		{[]answer{early(Fetching)}, true, true, ""}, {[]answer{late(Fetching)}, true, false, ""},
		{[]answer{early(None), late(Fetching)}, true, false, ""},
	} {
		node, wait := decide(test.answers, false)
		claimedNode, waitClaims := decide(test.answers, true)
		if node != test.node || claimedNode != test.node || wait != test.wait || waitClaims != test.waitClaims {
			t.Errorf("%v: %q %v, %q %v", test.answers, node, wait, claimedNode, waitClaims)
		}
	}
}

// TestOverTLS: a connection that ends in the middle is an error and no end, and what is whole is whole.
func TestOverTLS(t *testing.T) {
	whole := bytes.Repeat([]byte("layer"), 100_000)
	serve := func(send func(w http.ResponseWriter)) string {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if w.Header().Set(StateHeader, string(Here)); r.Method == http.MethodGet {
				send(w)
			}
		}))
		t.Cleanup(server.Close)
		return strings.TrimPrefix(server.URL, "https://")
	}
	broken := serve(func(w http.ResponseWriter) {
		_, _ = w.Write([]byte("half"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	nodes := []string{broken}
	c := New(Config{Nodes: func() (string, []string) { return "self:1", slices.Clone(nodes) }, Path: "/layers/", TLS: &tls.Config{InsecureSkipVerify: true}})
	t.Cleanup(c.http.CloseIdleConnections)
	tried := 0
	for content := range c.Layer(t.Context(), "sha256:a", func(bool) {}) {
		tried++
		got, err := io.ReadAll(content)
		_ = content.Close()
		if tried == 1 {
			if err == nil || string(got) != "half" {
				t.Errorf("%q, %v", got, err)
			}
			nodes = append(nodes, serve(func(w http.ResponseWriter) { _, _ = w.Write(whole) }))
			continue
		}
		if err != nil || !bytes.Equal(got, whole) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		break
	}
	if tried != 2 {
		t.Errorf("%d nodes were tried", tried)
	}
}
