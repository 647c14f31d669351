package contact

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// LostAfter is how long a server that knows no leader waits for one, from its last proof on. An election
	// takes a second or two; the watches of etcd's clients end after three election timeouts, which is as long.
	LostAfter = 3 * time.Second
	// UnansweredAfter is how long a leader may be known, by its heartbeats, that answers no read: the way back to
	// it is cut. A leader that is only slow must not lose its followers' clients, which would all come to it.
	UnansweredAfter = 10 * time.Second
)

// ErrNoLeader is why contexts of Led end.
var ErrNoLeader = errors.New("no leader")

// Contact is the verdict on one server. Make it with New.
type Contact struct {
	mu     sync.Mutex
	proved time.Time
	lost   atomic.Bool
	since  time.Time // of lost
	led    context.Context
	lose   context.CancelCauseFunc
}

// New returns a server that has just started: it has as long to find a leader as one that has lost its leader.
func New() *Contact {
	c := &Contact{proved: time.Now()}
	c.led, c.lose = context.WithCancelCause(context.Background())
	return c
}

// Led is a context that ends when the server is without a leader, with ErrNoLeader as its cause; while it is, one that
// has ended.
func (c *Contact) Led() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.led
}

// Lost says whether the server is without a leader. It is for those who ask at each request.
func (c *Contact) Lost() bool { return c.lost.Load() }

// LostFor is how long the server has been without a leader; 0: it has one.
func (c *Contact) LostFor() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.lost.Load() {
		return 0
	}
	return time.Since(c.since)
}

// Prove notes that a read was proved just now: the leader answered, or, on the leader, most voters did.
func (c *Contact) Prove() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proved = time.Now()
	if c.lost.CompareAndSwap(true, false) {
		c.led, c.lose = context.WithCancelCause(context.Background())
	}
}

// Age is how long ago the last proof was.
func (c *Contact) Age() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.proved)
}

// Judge looks whether too much time has passed; known says whether a leader is known. It returns whether this call
// found so first.
func (c *Contact) Judge(known bool) (lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.proved) < patience(known) || !c.lost.CompareAndSwap(false, true) {
		return false
	}
	c.since = time.Now()
	c.lose(ErrNoLeader)
	return true
}

func patience(known bool) time.Duration {
	if known {
		return UnansweredAfter
	}
	return LostAfter
}
