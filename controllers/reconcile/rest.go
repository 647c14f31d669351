package reconcile

import (
	"maps"
	"sync"
	"time"
)

// Rests is how a loop rests after its passes: for four times as long as they took, within a bound. So changes that never end take a
// fifth of what they could, or little more, and those that come in a burst are one pass. The first change after a rest is handled at
// once.
type Rests int

const (
	// RestsNever is for loops whose passes cost little.
	RestsNever Rests = iota
	// RestsWhole is for a loop with one key, whose passes look at all objects of a kind.
	RestsWhole
	// RestsEach is for a loop whose passes write what grows with the objects behind a key, as the endpoints of a Service: each key rests.
	RestsEach
)

const (
	// restFactor is how many times as long as its pass took a rest is; restMax bounds that of a loop, restEachMax that of a key: endpoints
	// are late by as much, and who takes a cluster for quiet when nothing was written for 200 ms, as setpointtest.Wait, does not ask Busy,
	// which sees keys that rest.
	restFactor  = 4
	restMax     = 10 * time.Second
	restEachMax = 150 * time.Millisecond
	// sweepMin is how many keys are remembered until those are forgotten that rest no more; later it is twice as many as were left then.
	sweepMin = 1 << 10
)

// rests are the keys of a loop that rest. Without RestsEach all keys rest as one, under the zero key.
type rests[K comparable] struct {
	how Rests

	mu    sync.Mutex
	until map[K]time.Time
	sweep int // with how many keys those are forgotten that rest no more
}

func newRests[K comparable](how Rests) *rests[K] {
	return &rests[K]{how: how, until: map[K]time.Time{}, sweep: sweepMin}
}

// begin lets a key rest after a pass that took a time. A key of its own that failed does not: its pauses grow anyway.
func (r *rests[K]) begin(key K, now time.Time, took time.Duration, err error) {
	rest, of := min(restFactor*took, restMax), *new(K)
	if r.how == RestsEach {
		rest, of = min(rest, restEachMax), key
	}
	if r.how == RestsNever || rest <= 0 || r.how == RestsEach && err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.until) >= r.sweep {
		maps.DeleteFunc(r.until, func(_ K, until time.Time) bool { return !until.After(now) })
		r.sweep = max(sweepMin, 2*len(r.until))
	}
	r.until[of] = now.Add(rest)
}

// left is how long a key has yet to rest.
func (r *rests[K]) left(key K, now time.Time) time.Duration {
	if r.how == RestsNever {
		return 0
	}
	if r.how == RestsWhole {
		key = *new(K)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.until[key].Sub(now)
	if left <= 0 {
		delete(r.until, key)
	}
	return left
}
