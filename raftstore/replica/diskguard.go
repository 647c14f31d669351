package replica

import (
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// durationsKept is how many of the last write times are kept for Status.
const durationsKept = 1024

// diskGuard stops the replica when the disk fails or stalls: a leader that cannot
// write would otherwise step down, win again, and so on.
type diskGuard struct {
	fail func(error)
	// limit is Timing.DiskStall.
	limit time.Duration

	mu        sync.Mutex
	durations []time.Duration
	next      int
}

// write runs one write to disk under watch.
func (g *diskGuard) write(what string, f func() error) error {
	start := time.Now()
	stalled := time.AfterFunc(g.limit, func() {
		g.fail(fmt.Errorf("%w: %s not done after %v", ErrDiskStalled, what, g.limit))
	})
	err := caught(f)
	stalled.Stop()
	g.record(time.Since(start))
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

func (g *diskGuard) record(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.durations) < durationsKept {
		g.durations = append(g.durations, d)
		return
	}
	g.durations[g.next] = d
	g.next = (g.next + 1) % durationsKept
}

// p99 is the time within which 99 of 100 recent writes were done.
func (g *diskGuard) p99() time.Duration {
	g.mu.Lock()
	sorted := slices.Clone(g.durations)
	g.mu.Unlock()
	if len(sorted) == 0 {
		return 0
	}
	slices.Sort(sorted)
	return sorted[int(math.Ceil(0.99*float64(len(sorted))))-1]
}
