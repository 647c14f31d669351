package numbers

import "time"

// The upper bounds of buckets in seconds, upstream's for work queues, for the eviction from devices, and for attempts to schedule a pod.
var (
	queueBounds    = []float64{1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10}
	evictionBounds = []float64{0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240}
	attemptBounds  = []float64{0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384}
)

// bucketsMax is the length of the longest list of bounds: the buckets are an array, so that an assignment copies a histogram.
const bucketsMax = 15

// Histogram counts durations. The zero value has the bounds of work queues.
type Histogram struct {
	Count  uint64
	Sum    time.Duration
	bounds []float64 // never changed; nil: queueBounds
	upTo   [bucketsMax]uint64
}

func (h *Histogram) observe(d time.Duration) {
	h.Count++
	h.Sum += d
	bounds := h.limits()
	for i := len(bounds) - 1; i >= 0 && d.Seconds() <= bounds[i]; i-- {
		h.upTo[i]++
	}
}

// Buckets tells how many durations were at most as long as each bound, in seconds.
func (h *Histogram) Buckets() map[float64]uint64 {
	bounds := h.limits()
	buckets := make(map[float64]uint64, len(bounds))
	for i, bound := range bounds {
		buckets[bound] = h.upTo[i]
	}
	return buckets
}

func (h *Histogram) limits() []float64 {
	if h.bounds == nil {
		return queueBounds
	}
	return h.bounds
}
