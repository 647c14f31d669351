package watch

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// DefaultLimitBytes is the default size of a ring.
const DefaultLimitBytes = 32 << 20

// Ring holds the events of the revisions in (compacted, last], one for each
// revision, without gaps. The zero value is not usable; call NewRing.
type Ring struct {
	limitBytes int64

	mu        sync.RWMutex
	events    window
	bytes     int64
	compacted uint64
	last      uint64
	// epoch counts how often the history was replaced by an older one; watchers
	// of an earlier epoch must list again.
	epoch  uint64
	groups map[string]*group
}

// NewRing returns an empty ring at revision 0 that holds about limitBytes of
// events; 0 means DefaultLimitBytes.
func NewRing(limitBytes int64) *Ring {
	if limitBytes <= 0 {
		limitBytes = DefaultLimitBytes
	}
	return &Ring{limitBytes: limitBytes, groups: map[string]*group{}}
}

// Append adds the events of one log entry, makes them visible together and wakes
// the watchers they concern. Revisions must follow on without a gap: anything
// else is a bug of the state machine and panics.
func (r *Ring) Append(events []Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range events {
		r.push(&events[i])
	}
	r.trim()
}

// trim drops the oldest events until the rest fits. The newest stays, however
// large, so that watchers get to see it.
func (r *Ring) trim() {
	for r.bytes > r.limitBytes && r.events.len() > 1 {
		r.evict()
	}
}

func (r *Ring) push(e *Event) {
	if e.Revision != r.last+1 {
		panic(fmt.Sprintf("watch: event of revision %d follows revision %d", e.Revision, r.last))
	}
	r.events.push(*e)
	r.bytes += e.Bytes()
	r.last = e.Revision
	r.eachGroup(e.Key, func(g *group) {
		g.revisions.push(e.Revision)
		g.broadcast()
	})
}

func (r *Ring) evict() {
	e := r.events.at(0)
	r.eachGroup(e.Key, func(g *group) {
		g.revisions.pop()
		g.lost = e.Revision
	})
	r.bytes -= e.Bytes()
	r.compacted = e.Revision
	r.events.pop()
}

// Reset replaces the whole history: afterwards the ring holds the events of the
// revisions in (compacted, last]. Watchers that have seen everything up to
// compacted go on; the others get ErrCompacted. So does everyone if last lies
// before what the ring held, since the future they have seen no longer exists.
func (r *Ring) Reset(compacted uint64, events []Event, last uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settleCursors()
	if last < r.last {
		r.epoch++
	}
	r.events, r.bytes = window{}, 0
	r.compacted, r.last = compacted, compacted
	for _, g := range r.groups {
		g.revisions, g.lost = revisionQueue{}, compacted
		g.broadcast()
	}
	for i := range events {
		r.push(&events[i])
	}
	if r.last != last {
		panic(fmt.Sprintf("watch: history ends at revision %d, want %d", r.last, last))
	}
	r.trim()
}

// settleCursors moves every cursor to its watcher's true progress. A cursor at
// rest lags behind, which would look like being overtaken after a Reset.
func (r *Ring) settleCursors() {
	for _, g := range r.groups {
		for w := range g.watchers {
			w.cursor.Store(w.progress())
		}
	}
}

// Bounds returns the revisions between which the ring is complete: it holds
// every event after compacted up to last.
func (r *Ring) Bounds() (compacted, last uint64) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.compacted, r.last
}

// At returns the event of a revision, if the ring still holds it.
func (r *Ring) At(revision uint64) (Event, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if revision <= r.compacted || revision > r.last {
		return Event{}, false
	}
	return *r.at(revision), true
}

// Since returns a copy of all events after the given revision, oldest first, or
// ErrCompacted.
func (r *Ring) Since(after uint64) ([]Event, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if after < r.compacted {
		return nil, fmt.Errorf("%w: %d, oldest is %d", ErrCompacted, after, r.compacted)
	}
	if after >= r.last {
		return nil, nil
	}
	return slices.Clone(r.events.from(int(after - r.compacted))), nil
}

// Tail returns a copy of the newest events of at most limitBytes together.
func (r *Ring) Tail(limitBytes int64) []Event {
	r.mu.RLock()
	defer r.mu.RUnlock()
	start := r.events.len()
	for start > 0 {
		limitBytes -= r.events.at(start - 1).Bytes()
		if limitBytes < 0 {
			break
		}
		start--
	}
	return slices.Clone(r.events.from(start))
}

// at returns the event of a revision inside the ring.
func (r *Ring) at(revision uint64) *Event {
	return r.events.at(int(revision - r.compacted - 1))
}

// eachGroup calls visit for the group of every folder that key lies in.
func (r *Ring) eachGroup(key string, visit func(*group)) {
	if len(r.groups) == 0 {
		return
	}
	for end := 0; ; {
		if g := r.groups[key[:end]]; g != nil {
			visit(g)
		}
		next := strings.IndexByte(key[end:], '/')
		if next < 0 {
			return
		}
		end += next + 1
	}
}
