package numbers

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Loop has the numbers of one queue and those who work it off.
type Loop struct {
	controller, queue string

	mu   sync.Mutex
	acts bool
	// starts: it does not know yet what there is to do.
	starts  bool
	counts  Counts
	oldest  time.Time // of what waits; zero: nothing does
	nextID  int
	working map[int]time.Time // since when each worker works on its key
	// handed are keys that a worker has taken and not begun with, resting those that come back when their rest is over.
	handed, resting int
	slow            slowest
	failing         failing
	writes          rate
	circles         circles
	passes          *passes // of the Ledger

	waited, worked prometheus.Observer // how long keys did, in seconds
}

// Counts are what /metrics shows, under upstream's names.
type Counts struct {
	Queue string
	Depth int
	// Adds, Retries, Circles, Passes and Idle, those of them that found nothing to do, only grow.
	Adds, Retries, Circles, Passes, Idle uint64
	// Unfinished is the time that workers have spent on the keys that they have, Longest the longest of them.
	Unfinished, Longest time.Duration
	// Failing is how many keys fail, of those that are kept.
	Failing int
}

func (l *Loop) inherit(before *Loop) {
	before.mu.Lock()
	defer before.mu.Unlock()
	before.acts = false
	c := before.counts
	l.counts = Counts{Adds: c.Adds, Retries: c.Retries, Circles: c.Circles, Passes: c.Passes, Idle: c.Idle}
}

// Started says that the loop has read what there is, and begins with that.
func (l *Loop) Started() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.starts = false
}

// End says that the loop's turn is over.
func (l *Loop) End() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acts, l.starts, l.counts.Depth, l.oldest, l.handed, l.resting = false, false, 0, time.Time{}, 0, 0
	l.failing, l.circles, l.slow, l.working = failing{}, circles{}, slowest{}, nil
}

func (l *Loop) busy(held bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.starts || (l.counts.Depth > 0 || l.resting > 0) && !held || l.handed > 0 || len(l.working) > 0
}

// Queued counts a key that waits now.
func (l *Loop) Queued(now time.Time) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.Adds++
	l.waits(now)
}

func (l *Loop) waits(now time.Time) {
	l.counts.Depth++
	if l.oldest.IsZero() {
		l.oldest = now
	}
}

// Taken counts a key that waits no longer; oldest is since when the next one does, zero: there is none.
func (l *Loop) Taken(waited time.Duration, oldest time.Time) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.Depth--
	l.oldest = oldest
	l.waited.Observe(waited.Seconds())
}

// Working says that a worker has begun with a key; done says that it has ended. The key is asked for its name only if
// it was slow.
func (l *Loop) Working(begun time.Time, name func() string) (done func(now time.Time)) {
	if l == nil {
		return func(time.Time) {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.working == nil {
		l.working = map[int]time.Time{}
	}
	l.nextID++
	id := l.nextID
	l.working[id] = begun
	return func(now time.Time) {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.working, id)
		l.worked.Observe(now.Sub(begun).Seconds())
		l.slow.add(now, now.Sub(begun), name)
	}
}

// Retried counts a key that comes back after a while.
func (l *Loop) Retried() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.Retries++
}

// Failed notes a key that failed, for the tries-th time in a row, and when it is tried again; zero: when it changes. It says
// whether it is time to tell of it.
func (l *Loop) Failed(now time.Time, key string, tries int, next time.Time, err error) (tell bool) {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failing.add(now, FailingKey{Key: key, Tries: tries, Next: timeOrNil(next), Error: inOneLine(err.Error()), At: now})
}

// Succeeded forgets that a key failed. The key is asked for its name only if some fail.
func (l *Loop) Succeeded(name func() string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.failing.keys) > 0 {
		l.failing.remove(name())
	}
}

// Wrote counts a write that was accepted: of which key's pass, to which object (empty: to a new one), and a hash of what was said.
// It returns a Circle if that is one write too many of the same.
func (l *Loop) Wrote(now time.Time, key, object string, said uint64) *Circle {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes.add(now)
	if object == "" {
		return nil
	}
	circle := l.circles.add(now, key, object, said)
	if circle != nil {
		l.counts.Circles++
	}
	return circle
}

// Lift lets a key be tried at once although it wrote in circles: its object was changed.
func (l *Loop) Lift(name func() string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.circles.putOff) > 0 {
		delete(l.circles.putOff, name())
	}
}

// PutOff is how long the key must not be tried because it writes in circles.
func (l *Loop) PutOff(now time.Time, name func() string) time.Duration {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.circles.putOff) == 0 {
		return 0
	}
	return l.circles.wait(now, name())
}

// Counts are the loop's of this moment.
func (l *Loop) Counts(now time.Time) Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := l.counts
	counts.Queue, counts.Failing = l.queue, len(l.failing.keys)
	for _, begun := range l.working {
		counts.Unfinished += now.Sub(begun)
		counts.Longest = max(counts.Longest, now.Sub(begun))
	}
	return counts
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
