package nodelifecycle

import "time"

const (
	// leaseGrace is how long a node without a session may go without renewing
	// its Lease or status, if the Lease does not promise longer.
	leaseGrace = 40 * time.Second
	// startupGrace is how long a new node may take to report for the first time.
	startupGrace = 60 * time.Second
	// lostGrace is how long a node whose session is lost, but which gossip still
	// sees, is only closed to new pods.
	lostGrace = 40 * time.Second
	// holdDown is how long a node must have been down before its pods are asked
	// to go: most faults heal within it.
	holdDown = 10 * time.Second
	// echo is how long after a session ended a sign of life may be one from
	// before that arrives late.
	echo = 3 * time.Second
	// drainWindow is how long a node that said goodbye may stay away, for a
	// restart or an upgrade, before it counts as lost.
	drainWindow = 5 * time.Minute
)

// state is what a node is held for.
type state int

const (
	// healthy: it reports.
	healthy state = iota
	// degraded: it reports, but gossip does not see it.
	degraded
	// suspect: it does not report, but gossip sees it; closed to new pods.
	suspect
	// down: nothing speaks for it.
	down
	// draining: it said goodbye and is expected back.
	draining
)

// heartbeat is when a node without a session last gave a sign of life.
type heartbeat struct {
	// at is by this server's clock, the moment the change was seen; a node that
	// was never seen to change has the start of the term.
	at time.Time
	// reported is whether the node has ever posted a status.
	reported bool
	// witnessed is whether this controller saw the change itself, and at is not
	// only when it began to look.
	witnessed bool
	// promised is how long the node's Lease says that it lasts; 0 without one.
	promised time.Duration
}

// grace is how long the node may be silent. One that renews seldom says so in
// its Lease.
func (b heartbeat) grace() time.Duration {
	if !b.reported {
		return startupGrace
	}
	return max(leaseGrace, b.promised)
}

// speaks reports whether the node, whose session ended at since, reached the
// API after that, so that it lives, and for how long that counts.
func (b heartbeat) speaks(since, now time.Time) (wait time.Duration, ok bool) {
	wait = b.at.Add(b.grace()).Sub(now)
	return wait, b.witnessed && wait > 0 && b.at.After(since.Add(echo))
}

// verdict is the judgement over one node at one moment.
type verdict struct {
	state state
	// evict says that the hold-down is over: pods may be asked to go, if the
	// budget allows it.
	evict bool
	// again is when the judgement changes if nothing happens; 0 for never.
	again time.Duration
}

// judge is the table of the design as a function: the session proves, gossip
// hints, the Lease decides for nodes that have no session, and keeps one whose
// session is gone but that still writes from being taken for dead. No deadline
// starts before the term did, so that a new leader condemns nobody for what it
// has not watched itself.
func judge(s Signal, beat heartbeat, term, now time.Time) verdict {
	switch s.Session {
	case SessionAlive:
		if s.Gossip == GossipDead {
			return verdict{state: degraded}
		}
		return verdict{state: healthy}
	case SessionQuiet:
		if s.Gossip == GossipDead {
			return judgeLost(s, beat, term, now)
		}
		return verdict{state: healthy}
	case SessionClosedCleanly:
		return judgeDrained(s, beat, term, now)
	case SessionLost:
		return judgeLost(s, beat, term, now)
	default:
		return judgeLease(beat, now)
	}
}

func judgeDrained(s Signal, beat heartbeat, term, now time.Time) verdict {
	if wait, ok := beat.speaks(s.SessionSince, now); ok {
		return verdict{state: suspect, again: wait}
	}
	since := latest(s.SessionSince, term)
	if wait := since.Add(drainWindow).Sub(now); wait > 0 {
		return verdict{state: draining, again: wait}
	}
	return condemn(since.Add(drainWindow), now)
}

func judgeLost(s Signal, beat heartbeat, term, now time.Time) verdict {
	if wait, ok := beat.speaks(s.SessionSince, now); ok {
		return verdict{state: suspect, again: wait} // whatever keeps its session away, it is not dead
	}
	since := latest(s.SessionSince, term)
	if s.Gossip == GossipDead {
		return condemn(since, now)
	}
	if wait := since.Add(lostGrace).Sub(now); wait > 0 {
		return verdict{state: suspect, again: wait}
	}
	return verdict{state: down, evict: true}
}

func judgeLease(beat heartbeat, now time.Time) verdict {
	grace := beat.grace()
	if wait := beat.at.Add(grace).Sub(now); wait > 0 {
		return verdict{state: healthy, again: wait}
	}
	return condemn(beat.at.Add(grace), now)
}

// condemn is down since a moment, with the hold-down from then on.
func condemn(since, now time.Time) verdict {
	if wait := since.Add(holdDown).Sub(now); wait > 0 {
		return verdict{state: down, again: wait}
	}
	return verdict{state: down, evict: true}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
