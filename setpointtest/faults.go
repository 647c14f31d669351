package setpointtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnyLoop is By of a Fault that happens to requests of all control loops.
const AnyLoop = "*"

// Fault is something that happens to requests of the test's clients, those made with RESTConfig, or of a control loop.
// Requests of the test's own helpers, such as Apply, meet none.
type Fault struct {
	// By is who asks: "" are the test's clients, of any user; a user's name is that user's; the name of a control loop Trace
	// shows it, such as "deployment-controller" or "scheduler", is that loop, and AnyLoop all of them.
	By string
	// Verb, Kind, Name and Agent choose requests; "" is any. Verb and Kind are as in Ask, Agent is a part of the
	// User-Agent, by which programs differ.
	Verb, Kind, Name, Agent string
	// Nth is the first request of them that it happens to; 0 is the first one.
	Nth int
	// Times is how many it happens to; 0 is one, less than 0 all.
	Times int
	// Effect is what happens.
	Effect Effect
	// ofProgram chooses the writes of the program that Explore crashes.
	ofProgram bool
}

// Effect is what a Fault does to a request.
type Effect struct {
	name string
	send func(r *http.Request, next http.RoundTripper) (*http.Response, error)
}

// errLost is what a client is told whose answer is lost.
var errLost = errors.New("setpointtest: the connection was reset before the answer")

var (
	// Conflict answers 409 Conflict, as if somebody else had been faster. Nothing is written.
	Conflict = Fail(http.StatusConflict, metav1.StatusReasonConflict, "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version and try again")
	// Unavailable answers 503. Nothing is written.
	Unavailable = Fail(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the server is currently unable to handle the request")
	// Unreachable breaks the connection before the request is sent. Nothing is written.
	Unreachable = Effect{"Unreachable", func(*http.Request, http.RoundTripper) (*http.Response, error) {
		return nil, errors.New("setpointtest: the connection was refused")
	}}
	// LoseAnswer does what is asked and breaks the connection before the answer: the client cannot know.
	LoseAnswer = Effect{"LoseAnswer", func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		return nil, errLost
	}}
)

// Fail answers with a status in place of doing what is asked.
func Fail(code int, reason metav1.StatusReason, message string) Effect {
	return Effect{string(reason), func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
		status := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message}
		body, err := json.Marshal(status)
		if r.Body != nil {
			r.Body.Close()
		}
		return &http.Response{
			StatusCode: code, Status: http.StatusText(code), Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
			Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Proto: "HTTP/2.0", ProtoMajor: 2,
		}, err
	}}
}

// Delay does what is asked after a while.
func Delay(d time.Duration) Effect {
	return Effect{"Delay", func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		select {
		case <-time.After(d):
			return next.RoundTrip(r)
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}}
}

// Inject lets a Fault happen from now on.
func (c *Cluster) Inject(f Fault) *Injected {
	c.t.Helper()
	c.alive()
	if f.Effect.send == nil {
		c.t.Fatal("setpointtest: a Fault needs an Effect, such as setpointtest.Conflict")
	}
	f.Nth, f.Times = max(f.Nth, 1), max(f.Times, -1)
	if f.Times == 0 {
		f.Times = 1
	}
	a := &armed{Fault: f}
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	c.faults.armed = append(c.faults.armed, a)
	return &Injected{&c.faults, a}
}

// Injected is a Fault that may happen.
type Injected struct {
	faults *faults
	armed  *armed
}

// Happened is how often it did.
func (i *Injected) Happened() int {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	return i.armed.happened
}

// HoldWatches makes the caches of the test's clients stale: watches of the kind, "" for all, tell nothing new until
// release is called, or the test ends. What clients get and list is of now.
func (c *Cluster) HoldWatches(kind string) (release func()) {
	c.t.Helper()
	return c.HoldWatchesOf("", kind)
}

// HoldWatchesOf is HoldWatches for one client: those whose user it is, or whose User-Agent it is a part of.
func (c *Cluster) HoldWatchesOf(client, kind string) (release func()) {
	c.t.Helper()
	c.alive()
	g := &gate{client: client, kind: kind, open: make(chan struct{})}
	c.faults.mu.Lock()
	c.faults.gates = append(c.faults.gates, g)
	c.faults.mu.Unlock()
	release = sync.OnceFunc(func() {
		close(g.open)
		c.faults.mu.Lock()
		defer c.faults.mu.Unlock()
		c.faults.gates = slices.DeleteFunc(c.faults.gates, func(other *gate) bool { return other == g })
	})
	c.t.Cleanup(release)
	return release
}

// DropWatches ends the watches of the kind, "" for all, as a server that restarts does. Clients watch again.
func (c *Cluster) DropWatches(kind string) {
	c.t.Helper()
	c.alive()
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	for s := range c.faults.streams {
		if matches(kind, s.ask.Kind) {
			s.dropped.Store(true)
			s.ReadCloser.Close()
		}
	}
}

// faults are those of a cluster.
type faults struct {
	mu      sync.Mutex
	armed   []*armed
	gates   []*gate
	streams map[*stream]struct{}
}

// armed is a Fault with the number of requests that it has seen, and to which it happened.
type armed struct {
	Fault
	seen, happened int
}

// gate holds watches until it is open.
type gate struct {
	client, kind string
	open         chan struct{}
}

func (g *gate) holds(s *stream) bool {
	return matches(g.kind, s.ask.Kind) && (g.client == s.ask.User || strings.Contains(s.ask.Agent, g.client))
}

func matches(pattern, text string) bool { return pattern == "" || pattern == text }

func (f *Fault) matches(a Ask) bool {
	if f.ofProgram && (!a.ofProgram || !a.writes() || a.heartbeat()) {
		return false
	}
	return f.by(a) && matches(f.Verb, a.Verb) && matches(f.Kind, a.Kind) && matches(f.Name, a.Name) && strings.Contains(a.Agent, f.Agent)
}

// by reports whether the one who asks is meant.
func (f *Fault) by(a Ask) bool {
	switch {
	case a.loop != "":
		return f.By == a.loop || f.By == AnyLoop
	case f.By == "":
		return true
	}
	return f.By == a.User
}

// send sends a request through the faults.
func (f *faults) send(r *http.Request, ask Ask, next http.RoundTripper) (*http.Response, error) {
	if effect := f.next(ask); effect != nil {
		return effect.send(r, next)
	}
	response, err := next.RoundTrip(r)
	if err != nil || ask.Verb != "watch" {
		return response, err
	}
	s := &stream{ReadCloser: response.Body, faults: f, ask: ask, gone: r.Context().Done()}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.streams == nil {
		f.streams = map[*stream]struct{}{}
	}
	f.streams[s] = struct{}{}
	response.Body = s
	return response, nil
}

// next counts the request and returns what happens to it, nil for nothing.
func (f *faults) next(ask Ask) (effect *Effect) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.armed {
		if !a.matches(ask) {
			continue
		}
		a.seen++
		if effect == nil && a.seen >= a.Nth && (a.Times < 0 || a.seen < a.Nth+a.Times) {
			effect = &a.Effect
			a.happened++
		}
	}
	return effect
}

// stream is a watch that can be held and dropped.
type stream struct {
	io.ReadCloser
	faults *faults
	ask    Ask
	gone   <-chan struct{}
	// dropped: the server seems to have ended it.
	dropped atomic.Bool
}

// Read implements io.Reader.
func (s *stream) Read(b []byte) (int, error) {
	n, err := s.ReadCloser.Read(b)
	if s.dropped.Load() {
		return 0, io.EOF
	}
	for g := s.faults.held(s); g != nil; g = s.faults.held(s) {
		select {
		case <-g.open:
		case <-s.gone:
			return n, err
		}
	}
	return n, err
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.faults.mu.Lock()
	delete(s.faults.streams, s)
	s.faults.mu.Unlock()
	return s.ReadCloser.Close()
}

// heldKinds are those whose watches are held now.
func (f *faults) heldKinds() (kinds []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, g := range f.gates {
		kinds = append(kinds, cmp.Or(g.kind, "all kinds"))
	}
	return kinds
}

// held returns a closed gate that holds the stream, or nil.
func (f *faults) held(s *stream) *gate {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, g := range f.gates {
		select {
		case <-g.open:
			continue
		default:
		}
		if g.holds(s) {
			return g
		}
	}
	return nil
}
