package raftstore

import (
	"context"
	"sync"
	"time"
)

const (
	// gatherMin is how many callers must have been outstanding together for a fetch to wait for company. They are fewer than for
	// a batch of writes: where processors are busy, reads come one by one, and a fetch costs two servers as much as serving
	// a few reads.
	gatherMin = 3
	// gatherLimit bounds how long a fetch waits for company.
	gatherLimit = 2 * time.Millisecond
)

// coalescer lets many callers share one answer. An answer serves only callers who
// came before its fetch began: one that began earlier may be older than a write
// the caller knows of. After a fetch for several callers the next one waits for their
// company, at most gatherLimit after the end of the last one, also if only one came. A
// caller who was alone all the time never waits.
type coalescer struct {
	// fetch serves so many callers. It must end when the store does.
	fetch func(callers int) (uint64, error)

	mu sync.Mutex
	// next collects the callers of the next fetch.
	next    *round
	running bool
	closed  bool
	fetches sync.WaitGroup

	// pacing belongs to run.
	pacing batchWait
}

// round is one fetch and its answer, readable once done is closed.
type round struct {
	callers int // of coalescer.mu
	// wanted is how many callers the round waits for, of coalescer.mu; they have come
	// when complete is closed.
	wanted   int
	complete chan struct{}

	done  chan struct{}
	value uint64
	err   error
}

func newRound() *round {
	return &round{complete: make(chan struct{}), done: make(chan struct{})}
}

// closedRound answers those who come too late.
var closedRound = func() *round {
	r := &round{done: make(chan struct{}), err: ErrStopped}
	close(r.done)
	return r
}()

// get returns the answer of a fetch that begins after the call.
func (c *coalescer) get(ctx context.Context) (uint64, error) {
	r := c.join()
	select {
	case <-r.done:
		return r.value, r.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (c *coalescer) join() *round {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return closedRound
	}
	if c.next == nil {
		c.next = newRound()
	}
	if !c.running {
		c.running = true
		c.fetches.Go(c.run)
	}
	if c.next.callers++; c.next.callers == c.next.wanted {
		close(c.next.complete)
	}
	return c.next
}

// run fetches until nobody waits.
func (c *coalescer) run() {
	for r := c.gather(); r != nil; r = c.gather() {
		begun := time.Now()
		r.value, r.err = c.fetch(r.callers)
		c.landed(r, time.Since(begun)) // before its callers can come back and be counted twice
		close(r.done)
	}
}

// gather waits for the company that may be expected, and returns the round to fetch
// for; nil if nobody came.
func (c *coalescer) gather() *round {
	if complete := c.expect(c.pacing.expected(gatherMin)); complete != nil {
		enough := time.NewTimer(time.Until(c.pacing.until))
		select {
		case <-complete:
		case <-enough.C:
		}
		enough.Stop()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.next
	c.next = nil
	if c.running = r != nil && r.callers > 0; !c.running {
		return nil
	}
	return r
}

// expect returns what is closed when as many callers have come; nil if they have.
func (c *coalescer) expect(wanted int) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wanted == 1 {
		return nil
	}
	if c.next == nil {
		c.next = newRound()
	}
	if c.next.callers >= wanted {
		return nil
	}
	c.next.wanted = wanted
	return c.next.complete
}

func (c *coalescer) landed(r *round, took time.Duration) {
	together := r.callers
	c.mu.Lock()
	if c.next != nil {
		together += c.next.callers
	}
	c.mu.Unlock()
	c.pacing.landed(landing{at: time.Now(), took: took, limit: gatherLimit, together: together})
}

// drain refuses new callers and waits until no fetch runs.
func (c *coalescer) drain() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.fetches.Wait()
}
