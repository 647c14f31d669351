package session

import "time"

const (
	// pingGrace is how long a session lives without a ping.
	pingGrace = 15 * time.Second
	// quietLimit is how long a session may be without a ping, and a peer without a
	// digest, before it counts as quiet: pings and digests come every 3 s.
	quietLimit = 4500 * time.Millisecond
	// returnGrace is how long a node whose stream broke may take to come back.
	returnGrace = 3 * time.Second
	// silentLimit is how long a peer may send no digest before the sessions it
	// holds count as broken.
	silentLimit = 15 * time.Second
	// memory is how long an ended session is remembered.
	memory = time.Hour
)

// State is what the servers know of a node's session.
type State int

const (
	// Unknown: no session is remembered.
	Unknown State = iota
	// Alive: some server hears pings, or lost the stream less than 3 s ago.
	Alive
	// Lost: no ping for 15 s, or the stream broke and the node is not back.
	Lost
	// ClosedCleanly: the agent said goodbye.
	ClosedCleanly
	// Quiet: not Lost yet, but a ping is overdue.
	Quiet
)

// Entry is the state of one node's session, and since when it is so by this
// server's clock. A session that is Lost after it was Quiet is so since then.
type Entry struct {
	State State
	Since time.Time
}

// phase is what the server that holds a session saw of it.
type phase int

const (
	open phase = iota
	broken
	expired
	closed
)

// record is the newest session of a node with one server. Times are by the
// clock of the server that reads it.
type record struct {
	instance string // of the agent
	counter  uint64 // of the session, rising within an instance
	phase    phase
	opened   time.Time
	changed  time.Time // when phase became what it is
	quiet    time.Time // since when a sign of life is overdue; zero: none is
}

// supersedes reports whether r is a later session of the same node. An agent
// counts its sessions; between two of its processes lies enough time for the
// servers' own clocks to tell.
func (r record) supersedes(other record) bool {
	if r.instance == other.instance {
		return r.counter > other.counter
	}
	return r.opened.After(other.opened)
}

// judge is the state of a node with these records, one from each server that
// has any.
func judge(records []record, now time.Time) Entry {
	if len(records) == 0 {
		return Entry{}
	}
	newest := records[0]
	for _, r := range records[1:] {
		if r.supersedes(newest) {
			newest = r
		}
	}
	switch newest.phase {
	case closed:
		return Entry{State: ClosedCleanly, Since: newest.changed}
	case expired:
		return Entry{State: Lost, Since: newest.silentSince(newest.changed)}
	case broken:
		if lost := newest.changed.Add(returnGrace); !now.Before(lost) {
			return Entry{State: Lost, Since: newest.silentSince(lost)}
		}
	case open:
	}
	if !newest.quiet.IsZero() {
		return Entry{State: Quiet, Since: newest.quiet}
	}
	return Entry{State: Alive, Since: newest.opened}
}

// silentSince is when the session fell quiet, if it did, or else lost.
func (r record) silentSince(lost time.Time) time.Time {
	if r.quiet.IsZero() {
		return lost
	}
	return r.quiet
}
