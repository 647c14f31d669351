package numbers

import "time"

// Bounds are the upper bounds of a Histogram's buckets in seconds, upstream's for work queues.
var Bounds = [...]float64{1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10}

// Histogram counts durations.
type Histogram struct {
	Count uint64
	Sum   time.Duration
	// UpTo are how many were at most as long as each of Bounds.
	UpTo [len(Bounds)]uint64
}

func (h *Histogram) observe(d time.Duration) {
	h.Count++
	h.Sum += d
	for i := len(Bounds) - 1; i >= 0 && d.Seconds() <= Bounds[i]; i-- {
		h.UpTo[i]++
	}
}
