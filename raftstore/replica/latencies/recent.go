package latencies

import (
	"math"
	"slices"
	"sync"
	"time"
)

const (
	// kept is how many of the last times count.
	kept = 1024
	// few is how many of them say how it is now.
	few = 8
)

// Recent keeps how long the last runs of something took, and since when others run. The zero value is
// empty; any goroutine may call it.
type Recent struct {
	mu      sync.Mutex
	last    []time.Duration
	next    int
	running []time.Time // in the order of their begin
}

// Begin notes that a run begins. Its end must be called once; it adds the run.
func (d *Recent) Begin() (end func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	begun := time.Now()
	d.running = append(d.running, begun)
	return func() { d.end(begun) }
}

func (d *Recent) end(begun time.Time) {
	d.mu.Lock()
	if i := slices.Index(d.running, begun); i >= 0 {
		d.running = slices.Delete(d.running, i, i+1)
	}
	d.mu.Unlock()
	d.Record(time.Since(begun))
}

// Waiting is how long the oldest of those that run has run, 0 if none does.
func (d *Recent) Waiting() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.running) == 0 {
		return 0
	}
	return time.Since(d.running[0])
}

// Slowest is the longest of the last few, or of those that run.
func (d *Recent) Slowest() time.Duration {
	slowest := d.Waiting()
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range min(few, len(d.last)) {
		slowest = max(slowest, d.last[(d.next+len(d.last)-1-i)%len(d.last)])
	}
	return slowest
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

// P99 is the time within which 99 of 100 were done, 0 if there was none; or, if that is longer, how long one runs
// already: of a hundred thousand good ones nobody would see that now nothing gets done.
func (d *Recent) P99() time.Duration {
	return max(d.Waiting(), d.done99())
}

func (d *Recent) done99() time.Duration {
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
