package probe

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/internal/nodefirewall"
)

// loop is a Watch whose probes find what the test says. mu guards the rest.
type loop struct {
	*Watch
	mu         sync.Mutex
	found      finding
	err        error
	generation uint32
	probes     int
	told       []nodefirewall.Problem
}

// now is what probes find from now on.
func (l *loop) now(found finding, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found, l.err = found, err
}

func (l *loop) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.probes
}

func (l *loop) problems() []nodefirewall.Problem {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.told)
}

// change tells of a change of nftables.
func (l *loop) change() {
	l.mu.Lock()
	l.generation++
	l.mu.Unlock()
	l.wake()
}

// started runs it until the test ends. Times are the bubble's.
func started(t *testing.T, first finding) *loop {
	t.Helper()
	l := &loop{found: first}
	l.Watch = &Watch{
		Config: Config{
			Changes: func(ctx context.Context, _ func()) { <-ctx.Done() }, Logger: slog.New(slog.DiscardHandler),
			Tell: func(p nodefirewall.Problem) {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.told = append(l.told, p)
			},
		},
		woken: make(chan struct{}, 1), generation: func() (uint32, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.generation, nil
		},
		explain: func(f finding) nodefirewall.Problem {
			return nodefirewall.Problem{Input: f.input == blocked, Forwarding: f.forwarding == blocked}
		},
		probe: func(context.Context) (finding, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.probes++
			return l.found, l.err
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go l.Run(ctx)
	synctest.Wait()
	return l
}

// pass lets time pass, and expects so many probes in it.
func (l *loop) pass(t *testing.T, d time.Duration, probes int) {
	t.Helper()
	before := l.count()
	time.Sleep(d)
	synctest.Wait()
	if got := l.count() - before; got != probes {
		t.Errorf("%d probes in %v, want %d", got, d, probes)
	}
}

var whole = finding{input: passes, forwarding: passes}

// TestAProbeFollowsAChange of nftables, but not at once, and not one of interfaces, which it changes itself.
func TestAProbeFollowsAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(t, whole)
		l.wake()
		l.pass(t, restTime+settleTime+time.Second, 0) // nftables is as it was
		l.now(finding{input: blocked, forwarding: passes}, nil)
		l.change()
		l.pass(t, settleTime-time.Second, 0)
		l.pass(t, 2*time.Second, 1)
		for range 10 { // pods start
			l.change()
			l.pass(t, time.Second, 0)
		}
		l.now(whole, nil)
		l.pass(t, restTime-10*time.Second+settleTime, 1)
		l.pass(t, lookInterval, 1)
		want := []nodefirewall.Problem{{}, {Input: true}, {}}
		if told := l.problems(); !slices.Equal(told, want) {
			t.Errorf("told %+v, want %+v", told, want)
		}
	})
}

// TestWhatIsBlockedIsLookedAtMoreOften, and what nobody tells of is noticed.
func TestWhatIsBlockedIsLookedAtMoreOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(t, whole)
		l.now(finding{input: passes, forwarding: blocked}, nil)
		l.pass(t, lookInterval+time.Second, 1)
		l.pass(t, 3*retryInterval, 3)
		if told := l.problems(); !slices.Equal(told, []nodefirewall.Problem{{}, {Forwarding: true}}) {
			t.Errorf("told %+v", told)
		}
	})
}

// TestWhatIsNotKnownStaysAsItWas: a DNS that is down for a while, or a probe that cannot be made, say nothing of a firewall.
func TestWhatIsNotKnownStaysAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(t, finding{})
		if told := l.problems(); told != nil {
			t.Errorf("told %+v although nothing is known", told)
		}
		l.now(finding{input: blocked, forwarding: passes}, nil)
		l.pass(t, retryInterval+time.Second, 1)
		l.now(finding{forwarding: passes}, nil)
		l.pass(t, retryInterval, 1)
		l.now(finding{}, errors.New("no address is free"))
		l.pass(t, retryInterval, 1)
		if told := l.problems(); !slices.Equal(told, []nodefirewall.Problem{{Input: true}}) {
			t.Errorf("told %+v", told)
		}
	})
}
