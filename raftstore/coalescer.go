package raftstore

import (
	"context"
	"sync"
	"time"
)

const (
	// crowd is how many callers of one fetch are many: they will be back soon, and
	// one fetch can serve all of them again.
	crowd = 4
	// gatherLimit bounds how long a fetch waits for such a crowd.
	gatherLimit = 2 * time.Millisecond
)

// coalescer lets many callers share one answer. An answer serves only callers who
// came before its fetch began: one that began earlier may be older than a write
// the caller knows of. After a fetch for many callers the next one waits as long as that one
// took, so that under load at most half of the time is spent with fetching. A
// lone caller never waits.
type coalescer struct {
	// fetch must end when the store does.
	fetch func() (uint64, error)

	mu sync.Mutex
	// next collects the callers of the next fetch.
	next    *round
	running bool
	closed  bool
	fetches sync.WaitGroup

	// earliest is when the next fetch may begin. It belongs to run.
	earliest time.Time
}

// round is one fetch and its answer, readable once done is closed.
type round struct {
	callers int // of coalescer.mu
	done    chan struct{}
	value   uint64
	err     error
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
		c.next = &round{done: make(chan struct{})}
	}
	if !c.running {
		c.running = true
		c.fetches.Go(c.run)
	}
	c.next.callers++
	return c.next
}

// run fetches until nobody waits.
func (c *coalescer) run() {
	for {
		time.Sleep(time.Until(c.earliest))
		c.mu.Lock()
		r := c.next
		c.next = nil
		c.running = r != nil
		c.mu.Unlock()
		if r == nil {
			return
		}
		begun := time.Now()
		r.value, r.err = c.fetch()
		close(r.done)
		c.earliest = time.Time{}
		if r.callers >= crowd {
			c.earliest = time.Now().Add(min(time.Since(begun), gatherLimit))
		}
	}
}

// drain refuses new callers and waits until no fetch runs.
func (c *coalescer) drain() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.fetches.Wait()
}
