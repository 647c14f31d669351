package upkeep

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fake is a thing of the tests.
type fake struct {
	name   string
	log    *[]string
	mu     sync.Mutex
	broken bool
	err    error // of putting it back
}

func (f *fake) isBroken() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.broken
}

// fails breaks it, so that putting it back returns err.
func (f *fake) fails(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken, f.err = true, err
}

func (f *fake) thing(guards bool) Thing {
	return Thing{
		Name: f.name, Guards: guards, Whole: func() (bool, error) { return !f.isBroken(), nil },
		PutBack: func(context.Context) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			*f.log = append(*f.log, f.name)
			f.broken = f.err != nil
			return f.err
		},
	}
}

// pass lets time pass, and what it brings end.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// started runs a keeper until the test ends. Times are the bubble's.
func started(t *testing.T, out *bytes.Buffer, things ...Thing) (k *Keeper) {
	t.Helper()
	k = New(Config{
		Changes: func(ctx context.Context, _ func()) { <-ctx.Done() }, Logger: slog.New(slog.NewTextHandler(out, nil)),
	})
	k.Hold(things...)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go k.Run(ctx)
	return k
}

// TestGuardsComeFirst, and while one is missing nothing that opens something comes back.
func TestGuardsComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		opens, guards := &fake{name: "opens", log: &log}, &fake{name: "guards", log: &log}
		k := started(t, new(bytes.Buffer), opens.thing(false), guards.thing(true))
		pass(time.Second)
		opens.fails(nil)
		guards.fails(nil)
		k.wake()
		pass(time.Second)
		if want := []string{"guards", "opens"}; !slices.Equal(log, want) {
			t.Errorf("put back %v, want %v", log, want)
		}
		log = nil
		opens.fails(nil)
		guards.fails(errors.New("refused"))
		k.wake()
		pass(5 * time.Second)
		if slices.Contains(log, "opens") || len(log) < 3 {
			t.Errorf("put back %v while the guard cannot be", log)
		}
		if p := k.Problems(); len(p) != 1 || p[0] != "guards cannot be put back: refused" {
			t.Errorf("problems %q", p)
		}
		guards.fails(nil)
		pass(3 * time.Second)
		if opens.isBroken() || len(k.Problems()) > 0 {
			t.Errorf("still open %v, problems %q", opens.isBroken(), k.Problems())
		}
	})
}

// TestWhatIsNotToldIsNoticed within lookInterval.
func TestWhatIsNotToldIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		thing := &fake{name: "thing", log: new([]string)}
		started(t, new(bytes.Buffer), thing.thing(false))
		pass(time.Second)
		thing.fails(nil)
		pass(lookInterval + restTime)
		if thing.isBroken() {
			t.Error("it was not looked at")
		}
	})
}

// TestAfterALookThatFailed the thing is looked at again soon.
func TestAfterALookThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := &fake{name: "thing", log: new([]string), broken: true}
		thing, busy := broken.thing(false), atomic.Bool{}
		busy.Store(true)
		whole := thing.Whole
		thing.Whole = func() (bool, error) {
			if busy.Load() {
				return false, errors.New("busy")
			}
			return whole()
		}
		k := started(t, new(bytes.Buffer), thing)
		pass(5 * time.Second) // the keeper is at rest
		if p := k.Problems(); len(p) != 1 || p[0] != "thing cannot be looked at: busy" {
			t.Errorf("problems %q", p)
		}
		busy.Store(false)
		pass(2 * (retryInterval + restTime))
		if broken.isBroken() || len(k.Problems()) > 0 {
			t.Errorf("still broken %v, problems %q", broken.isBroken(), k.Problems())
		}
	})
}

// TestAnOpponent removes a thing whenever it is back: that is told once, and costs less and less.
func TestAnOpponent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		var out bytes.Buffer
		thing := &fake{name: "bridge", log: &log}
		k := started(t, &out, thing.thing(false))
		for range 600 {
			thing.fails(nil)
			k.wake()
			pass(time.Second)
		}
		if many := len(log); many < contestedAfter+10 || many > 40 {
			t.Errorf("put back %d times in 10 minutes", many)
		}
		if p := k.Problems(); len(p) != 1 || !strings.Contains(p[0], "again and again") {
			t.Errorf("problems %q", p)
		}
		if lines := strings.Count(out.String(), "\n"); lines != 2 {
			t.Errorf("%d lines of the log:\n%s", lines, out.String())
		}
		pass(calmTime + 2*lookInterval)
		if p := k.Problems(); len(p) > 0 {
			t.Errorf("long after: %q", p)
		}
	})
}
