package shares

import (
	"context"
	"slices"
	"sync"
)

// Turns are places that holders wait for. They are safe for concurrent use.
type Turns struct {
	limits Limits

	mu      sync.Mutex
	holders map[Holder]int // without those that have none
	taken   int            // by tenants
	waiting []*turn        // in the order in which they came
}

// turn is somebody who waits. His channel is closed when he has a place.
type turn struct {
	holder Holder
	come   chan struct{}
}

// NewTurns makes places that are all free. Who waits is not bounded: there must be a bound for those who ask.
func NewTurns(limits Limits) *Turns { return &Turns{limits: limits, holders: map[Holder]int{}} }

// Wait takes a place as soon as the holder may have one: of those who may, the one with the fewest is next, and of these who came first.
// The error is that of ctx. leave gives the place back and must be called once.
func (t *Turns) Wait(ctx context.Context, h Holder) (leave func(), err error) {
	mine := &turn{h, make(chan struct{})}
	t.mu.Lock()
	t.waiting = append(t.waiting, mine)
	t.dispatch()
	t.mu.Unlock()
	select {
	case <-mine.come:
		return func() { t.leave(h) }, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := slices.Index(t.waiting, mine); at >= 0 {
		t.waiting = slices.Delete(t.waiting, at, at+1)
	} else {
		t.give(h) // it came at the same moment
	}
	return nil, ctx.Err()
}

func (t *Turns) leave(h Holder) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.give(h)
}

// give takes a place back; it is called with the lock held, as dispatch and next are.
func (t *Turns) give(h Holder) {
	if t.holders[h]--; t.holders[h] == 0 {
		delete(t.holders, h)
	}
	if !h.Privileged {
		t.taken--
	}
	t.dispatch()
}

func (t *Turns) dispatch() {
	for at := t.next(); at >= 0; at = t.next() {
		first := t.waiting[at]
		t.waiting = slices.Delete(t.waiting, at, at+1)
		t.holders[first.holder]++
		if !first.holder.Privileged {
			t.taken++
		}
		close(first.come)
	}
}

// next is whose turn it is among those who wait, or -1.
func (t *Turns) next() int {
	best := -1
	for at, w := range t.waiting {
		has := t.holders[w.holder]
		if t.limits.fits(w.holder, has, t.taken) && (best < 0 || has < t.holders[t.waiting[best].holder]) {
			best = at
		}
	}
	return best
}
