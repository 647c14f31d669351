package raftstore

import (
	"context"
	"sync"
)

// coalescer lets many callers share one answer. An answer serves only callers who
// came before its fetch began: one that began earlier may be older than a write
// the caller knows of.
type coalescer struct {
	// fetch must end when the store does.
	fetch func() (uint64, error)

	mu sync.Mutex
	// next collects the callers of the next fetch.
	next    *round
	running bool
	closed  bool
	fetches sync.WaitGroup
}

// round is one fetch and its answer, readable once done is closed.
type round struct {
	done  chan struct{}
	value uint64
	err   error
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
	return c.next
}

// run fetches until nobody waits.
func (c *coalescer) run() {
	for {
		c.mu.Lock()
		r := c.next
		c.next = nil
		c.running = r != nil
		c.mu.Unlock()
		if r == nil {
			return
		}
		r.value, r.err = c.fetch()
		close(r.done)
	}
}

// drain refuses new callers and waits until no fetch runs.
func (c *coalescer) drain() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.fetches.Wait()
}
