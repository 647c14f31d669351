package latencies

import (
	"math"
	"slices"
	"sync"
	"time"
)

// kept is how many of the last times count.
const kept = 1024

// Recent keeps how long the last runs of something took. The zero value is
// empty; any goroutine may call it.
type Recent struct {
	mu   sync.Mutex
	last []time.Duration
	next int
}

// Record adds one.
func (d *Recent) Record(took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.last) < kept {
		d.last = append(d.last, took)
		return
	}
	d.last[d.next] = took
	d.next = (d.next + 1) % kept
}

// P99 is the time within which 99 of 100 were done, 0 if there was none.
func (d *Recent) P99() time.Duration {
	sorted := d.sorted()
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(math.Ceil(0.99*float64(len(sorted))))-1]
}

// Longest is the longest of them, 0 if there was none.
func (d *Recent) Longest() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	var longest time.Duration
	for _, took := range d.last {
		longest = max(longest, took)
	}
	return longest
}

func (d *Recent) sorted() []time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	sorted := slices.Clone(d.last)
	slices.Sort(sorted)
	return sorted
}
