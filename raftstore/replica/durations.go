package replica

import (
	"math"
	"slices"
	"sync"
	"time"
)

// durationsKept is how many of the last times are kept for Status.
const durationsKept = 1024

// durations keeps how long the last runs of something took. The zero value is
// empty; any goroutine may call it.
type durations struct {
	mu   sync.Mutex
	last []time.Duration
	next int
}

func (d *durations) record(took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.last) < durationsKept {
		d.last = append(d.last, took)
		return
	}
	d.last[d.next] = took
	d.next = (d.next + 1) % durationsKept
}

// p99 is the time within which 99 of 100 were done, 0 if there was none.
func (d *durations) p99() time.Duration {
	sorted := d.sorted()
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(math.Ceil(0.99*float64(len(sorted))))-1]
}

// longest is the longest of them, 0 if there was none.
func (d *durations) longest() time.Duration {
	sorted := d.sorted()
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)-1]
}

func (d *durations) sorted() []time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	sorted := slices.Clone(d.last)
	slices.Sort(sorted)
	return sorted
}
