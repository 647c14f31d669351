package numbers

import "time"

// A key that may rest is counted in Adds once, when it is due, and what it rests is no wait: so does upstream's delaying queue. A rest
// that counted as a wait would look like a loop with too few workers.

// Waits counts a key that is in the queue now. Added: in Adds too, since it was not counted before, and does not rest. Resting: it was
// said by Rests that the loop is busy with it until now.
func (l *Loop) Waits(now time.Time, added, resting bool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if added {
		l.counts.Adds++
	}
	l.waits(now)
	if resting {
		l.resting--
	}
}

// Handed counts a key that a worker has taken from the queue, and that neither Begins nor Rests yet; oldest is since when the next one
// waits, zero: none does.
func (l *Loop) Handed(oldest time.Time) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.Depth--
	l.handed++
	l.oldest = oldest
}

// Begins counts a key that was handed, with which its worker begins: after which time, and whether it has to be counted in Adds yet.
func (l *Loop) Begins(waited time.Duration, added bool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handed--
	if added {
		l.counts.Adds++
	}
	l.waited.Observe(waited.Seconds())
}

// Rests counts a key that was handed and comes back later. Busy says that the loop has something to do until then.
func (l *Loop) Rests(busy bool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handed--
	if busy {
		l.resting++
	}
}
