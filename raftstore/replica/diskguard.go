package replica

import (
	"errors"
	"fmt"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/replica/latencies"
)

// slowAfter is how long a write to disk may take before a leader looks for another to take its place.
const slowAfter = time.Second

// diskGuard stops the replica when the disk fails or stalls: a leader that cannot
// write would otherwise step down, win again, and so on.
type diskGuard struct {
	fail func(error)
	// limit is Timing.DiskStall; slow has a value when a write has taken slowAfter.
	limit time.Duration
	slow  chan struct{}
	// relieve makes room on a full disk, and reports whether it did; nil cannot.
	relieve func() bool

	writes latencies.Recent
}

// write runs one write to disk under watch. When the disk is full it is run once
// more with the reserve's space: it failed as a whole, so f must bear that.
func (g *diskGuard) write(what string, f func() error) error {
	defer g.writes.Begin()()
	slow := time.AfterFunc(min(slowAfter, g.limit), func() { notify(g.slow) })
	stalled := time.AfterFunc(g.limit, func() {
		g.fail(fmt.Errorf("%w: %s not done after %v", ErrDiskStalled, what, g.limit))
	})
	err := caught(f)
	if errors.Is(err, syscall.ENOSPC) && g.relieve != nil && g.relieve() {
		err = caught(f)
	}
	slow.Stop()
	stalled.Stop()
	if err != nil {
		err = fmt.Errorf("%w: %s: %w", ErrDiskFailed, what, err)
		g.fail(err)
	}
	return err
}

// caught makes an error of a panic, and of a fault in memory that maps a file: so
// the database answers some damaged files.
func caught(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrCorrupt, p)
		}
	}()
	return f()
}
