package clusterclock

import (
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// stepMax is the longest part of Advance. It is shorter than what must not pass unseen: the 5 s from which on the loop
// that judges nodes takes its own process to have stood still, the 10 s in which nodes renew their leases.
const stepMax = 2 * time.Second

var _ clock.WithTicker = &Clock{}

// Clock goes as fast as the process's, and ahead of it by what Advance has added. It is safe for concurrent use.
type Clock struct {
	mu      sync.Mutex
	ahead   time.Duration
	waiting map[*timer]struct{}
	woken   []*timer // by the last step
}

// New returns a clock that is ahead of the process's.
func New(ahead time.Duration) *Clock {
	return &Clock{ahead: ahead, waiting: map[*timer]struct{}{}}
}

// Ahead is by how much the clock is ahead of the process's.
func (c *Clock) Ahead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead
}

// Advance lets d pass in steps of at most 2 s. After each, settle is called, which should return when those that were
// woken have done what there was to do. An error of settle ends it.
func (c *Clock) Advance(d time.Duration, settle func() error) error {
	for d > 0 {
		step := c.step(d)
		d -= step
		if err := settle(); err != nil {
			return err
		}
	}
	return nil
}

// Jump lets d pass at once, as for a machine that slept: each timer that came due fires once, each ticker ticks once. It is for spans of
// which Advance would make too many steps.
func (c *Clock) Jump(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pass(d)
}

// step adds d or the first part of it.
func (c *Clock) step(d time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	step := min(d, stepMax)
	c.pass(step)
	return step
}

// pass adds d and wakes those whose time has come, each once. Who of them acts first is open.
func (c *Clock) pass(d time.Duration) {
	c.ahead += d
	now := c.now()
	c.woken = c.woken[:0]
	for t := range c.waiting {
		if t.arm(now) {
			c.woken = append(c.woken, t)
		}
	}
}

// Unseen says whether one that the last step of Advance has woken has not taken notice yet: it has not received the time. One that
// no longer listens never does.
func (c *Clock) Unseen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.woken, func(t *timer) bool { return len(t.c) > 0 })
}

// Now implements clock.PassiveClock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() time.Time { return time.Now().Add(c.ahead) }

// Since implements clock.PassiveClock.
func (c *Clock) Since(then time.Time) time.Duration { return c.Now().Sub(then) }

// After implements clock.Clock.
func (c *Clock) After(d time.Duration) <-chan time.Time { return c.NewTimer(d).C() }

// Sleep implements clock.Clock.
func (c *Clock) Sleep(d time.Duration) { <-c.After(d) }

// Tick implements clock.Clock.
func (c *Clock) Tick(d time.Duration) <-chan time.Time { return c.NewTicker(d).C() }

// NewTimer implements clock.Clock.
func (c *Clock) NewTimer(d time.Duration) clock.Timer {
	t := &timer{clock: c, c: make(chan time.Time, 1)}
	t.Reset(d)
	return t
}

// NewTicker implements clock.WithTicker. As time's, it panics unless every is positive.
func (c *Clock) NewTicker(every time.Duration) clock.Ticker {
	if every <= 0 {
		panic("clusterclock: NewTicker needs a positive interval")
	}
	t := &timer{clock: c, c: make(chan time.Time, 1), every: every}
	t.Reset(every)
	return ticker{t}
}

// ticker is a timer that comes again.
type ticker struct{ *timer }

// Stop implements clock.Ticker.
func (t ticker) Stop() { t.timer.Stop() }
