package setpoint

import (
	"context"
	"errors"
	"runtime"
	"time"

	"k8s.io/utils/clock"
)

const (
	// settleLooks is how many looks in a row must find that nobody has anything to do. Before each this goroutine lets the
	// others go first settleYields times, and then sleeps, so that those of other threads come to an end.
	settleLooks  = 2
	settleYields = 100
	settleSleep  = 100 * time.Microsecond
	// unseenMax is how long it waits for those that a step has woken to take notice: who no longer listens never does.
	unseenMax = time.Second
	// settleMax is after which time it goes on although somebody always has.
	settleMax = 10 * time.Second
)

var errTimeBack = errors.New("time does not go back")

// Clock is the cluster's time: by it objects are made, tokens end, control loops act and simulated nodes live. It is the
// process's, and in memory ahead of it by what Advance has added.
func (c *Cluster) Clock() clock.WithTicker {
	if c.clock == nil {
		return clock.RealClock{}
	}
	return c.clock
}

// Advance lets time pass for a cluster in memory, and for nobody else: in steps of at most 2 s, after each of which the
// servers, their loops and the simulated nodes do what there is to do then. Raft and timeouts of requests go by the
// process's time.
func (c *Cluster) Advance(ctx context.Context, d time.Duration) error {
	switch {
	case c.clock == nil:
		return errNotInMemory
	case d < 0:
		return errTimeBack
	}
	return c.clock.Advance(d, func() error { return c.settle(ctx) })
}

// Jump lets d pass at once for a cluster in memory, as for machines that slept: what came due meanwhile comes once, in any order, and
// nobody's silence meanwhile counts against him. It is for years, of which Advance would make too many steps. Jump less than a third of a
// certificate's life (120 days), then Advance 10 minutes, so that it is renewed. A longer jump may end kubeconfigs: Listen again then.
func (c *Cluster) Jump(ctx context.Context, d time.Duration) error {
	switch {
	case c.clock == nil:
		return errNotInMemory
	case d < 0:
		return errTimeBack
	}
	c.clock.Jump(d)
	return c.settle(ctx)
}

// settle returns when several looks in a row have found that nobody has anything to do, or ctx has ended.
func (c *Cluster) settle(ctx context.Context) error {
	began, at := time.Now(), c.Revision()
	for quiet := 0; quiet < settleLooks && ctx.Err() == nil && time.Since(began) < settleMax; quiet++ {
		for range settleYields {
			runtime.Gosched()
		}
		time.Sleep(settleSleep)
		if now := c.Revision(); now != at || c.busy() || c.clock.Unseen() && time.Since(began) < unseenMax {
			at, quiet = now, -1
		}
	}
	return ctx.Err()
}

func (c *Cluster) busy() bool {
	for _, replica := range c.replicas.up() {
		if replica.Busy() {
			return true
		}
	}
	return false
}
