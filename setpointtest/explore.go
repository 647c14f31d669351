package setpointtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const (
	// explored is how many writes of the program are points for faults.
	explored = 50
	// settlingOfOne is how long a world may take to end, in its own time; of several servers it is less, because each
	// minute of their log costs.
	settlingOfOne     = 10 * time.Minute
	settlingOfSeveral = 2 * time.Minute
	// stale is how long a cache hangs behind.
	stale = time.Minute
)

// Exploration is a scenario to be played again and again, each time with one fault.
type Exploration struct {
	// Config is the cluster of each world.
	Config Config
	// Program makes the program under test anew, with clients of c.RESTConfig(): it crashes and comes back.
	Program func(c *Cluster) Runnable
	// Scenario is what the test does, and what must be true in its course.
	Scenario func(c *Cluster)
	// State is what must be the same at the end; nil: the objects that the program and the scenario wrote, without
	// what differs each time, such as uids and times.
	State func(c *Cluster) string
	// Only plays the fault of this name alone, as a Finding bears it: so it is repeated. "": all.
	Only string
}

// Finding is a fault under which the scenario fails or ends differently.
type Finding struct {
	// Fault names it, such as "LoseAnswer at write 3, create configmaps": Exploration.Only with this name repeats it.
	Fault string
	// What is what went wrong.
	What string
}

// String is one line and more.
func (f Finding) String() string { return f.Fault + ": " + f.What }

// Explore plays the scenario without a fault, and then with each of these at each write of the program: a conflict, a
// server that is unavailable, a lost answer, a crash before and after, caches that hang behind, the last with a lost
// answer too. With Config.Replicas 3 or more it crashes the leader of the log in place of these: before the write, after
// its answer, and in place of its answer. It is the server to which the program speaks, so that its watches end too, and
// it is back half a minute later.
//
// It fails the test for each under which the scenario fails or ends differently. Every world is a bubble of its own, in
// virtual time.
func Explore(t *testing.T, e Exploration) {
	t.Helper()
	for _, finding := range Find(t, e) {
		t.Errorf("setpointtest: %s", finding)
	}
}

// Find is Explore that returns what it found. Only a scenario that fails without any fault fails the test.
func Find(t *testing.T, e Exploration) (findings []Finding) {
	t.Helper()
	if e.Program == nil || e.Scenario == nil {
		t.Fatal("setpointtest: an Exploration needs a Program and a Scenario")
	}
	calm := e.play(t, nil)
	if len(calm.failures) > 0 {
		t.Fatalf("setpointtest: the scenario fails without any fault: %s", strings.Join(calm.failures, "\n"))
	}
	var names []string
	for n, write := range calm.writes[:min(len(calm.writes), explored)] {
		for _, m := range e.mishaps() {
			name := fmt.Sprintf("%s at write %d, %s %s", m.name, n+1, write.Verb, write.Kind)
			names = append(names, name)
			if e.Only != "" && e.Only != name {
				continue
			}
			if what := difference(calm, e.play(t, func(w *playing) { w.arm(m, n+1) })); what != "" {
				findings = append(findings, Finding{name, what})
			}
		}
	}
	if e.Only != "" && !slices.Contains(names, e.Only) {
		t.Fatalf("setpointtest: Exploration.Only: there is no fault %q; there are\n\t%s", e.Only, strings.Join(names, "\n\t"))
	}
	return findings
}

// mishaps are those that are played.
func (e *Exploration) mishaps() []mishap {
	if e.Config.Replicas >= survivable {
		return leaderMishaps
	}
	return mishaps
}

// settling is how long a world may take to end.
func (e *Exploration) settling() time.Duration {
	if e.Config.Replicas > 1 {
		return settlingOfSeveral
	}
	return settlingOfOne
}

func difference(calm, other outcome) string {
	switch {
	case len(other.failures) > 0:
		return strings.Join(other.failures, "\n")
	case other.state != calm.state:
		return "it ends differently\n" + differingLines(calm.state, other.state)
	}
	return ""
}

// mishap is one kind of fault.
type mishap struct {
	name string
	send send
}

// send sends a request of the program, or does not.
type send func(w *playing, r *http.Request, next http.RoundTripper) (*http.Response, error)

var errCrashed = errors.New("setpointtest: the program has crashed")

var mishaps = []mishap{
	{"Conflict", plain(Conflict)}, {"Unavailable", plain(Unavailable)}, {"LoseAnswer", plain(LoseAnswer)},
	{"CrashBefore", func(w *playing, _ *http.Request, _ http.RoundTripper) (*http.Response, error) {
		w.crash()
		return nil, errCrashed
	}},
	{"CrashAfter", func(w *playing, r *http.Request, next http.RoundTripper) (*http.Response, error) {
		_, err := LoseAnswer.send(r, next)
		w.crash()
		return nil, err
	}},
	{"StaleCache", func(w *playing, r *http.Request, next http.RoundTripper) (*http.Response, error) {
		time.AfterFunc(stale, w.cluster.HoldWatches(""))
		return next.RoundTrip(r)
	}},
	{"LoseAnswer and StaleCache", func(w *playing, r *http.Request, next http.RoundTripper) (*http.Response, error) {
		time.AfterFunc(stale, w.cluster.HoldWatches(""))
		return LoseAnswer.send(r, next)
	}},
}

func plain(e Effect) send {
	return func(_ *playing, r *http.Request, next http.RoundTripper) (*http.Response, error) {
		return e.send(r, next)
	}
}

// outcome is how a world ended.
type outcome struct {
	state    string
	writes   []Ask
	failures []string
}

// playing is a world in which the scenario is played.
type playing struct {
	cluster *Cluster
	// life is that of the program now.
	life atomic.Pointer[life]
}

// life is one run of the program. Once it has crashed nothing that it sends arrives.
type life struct {
	dead   atomic.Bool
	cancel context.CancelFunc
}

func (l *life) gone() bool { return l != nil && l.dead.Load() }

// crash ends the program as kill -9 does; it comes back.
func (w *playing) crash() {
	l := w.life.Load()
	l.dead.Store(true)
	l.cancel()
}

// arm lets the mishap happen at the n-th write of the program.
func (w *playing) arm(m mishap, n int) {
	effect := Effect{m.name, func(r *http.Request, next http.RoundTripper) (*http.Response, error) { return m.send(w, r, next) }}
	w.cluster.Inject(Fault{Nth: n, ofProgram: true, Effect: effect})
}

// play plays the scenario in a bubble.
func (e *Exploration) play(t *testing.T, prepare func(*playing)) (result outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		trial := &trial{TB: t}
		trial.run(func() {
			c := Start(trial, e.Config)
			if e.Config.Replicas >= survivable {
				c.lead()
			}
			w := &playing{cluster: c}
			if prepare != nil {
				prepare(w)
			}
			c.Run(RunnableFunc(func(ctx context.Context) error { return e.keepRunning(ctx, w) }))
			e.Scenario(c)
			c.Advance(e.settling())
			result.state = e.stateOf(c)
			result.writes = c.asked.byProgram()
		})
		result.failures = trial.failures()
	})
	return result
}

// keepRunning runs the program, and again each time that it has crashed.
func (e *Exploration) keepRunning(ctx context.Context, w *playing) error {
	for {
		mortal, cancel := context.WithCancel(ctx)
		l := &life{cancel: cancel}
		w.life.Store(l)
		view := *w.cluster
		view.life = l
		err := e.Program(&view).Start(mortal)
		cancel()
		if ctx.Err() != nil || !l.gone() {
			return err
		}
		time.Sleep(time.Second) // until whoever runs it has noticed
	}
}

func (e *Exploration) stateOf(c *Cluster) string {
	if e.State != nil {
		return e.State(c)
	}
	text, err := c.essence()
	c.must(err)
	return text
}
