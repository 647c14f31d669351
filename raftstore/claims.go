package raftstore

import (
	"slices"
	"sync"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// claimsKept is how many comparisons a replica remembers. One that was away meets those
// again that it missed, and hears then what the others found.
const claimsKept = 16

// stateHash is the hash of a state.
type stateHash = [command.HashBytes]byte

// claims remembers what the members' states were at the log entries that asked for a
// comparison. Each member finds out for itself; nobody's word counts for more than
// another's, the leader's neither. Use newClaims; all methods may be called from any goroutine.
type claims struct {
	// doubts has the newest entry at which somebody claims another state than this
	// replica has.
	doubts chan uint64

	mu sync.Mutex
	// entries has the newest last.
	entries []*compared
}

// compared is one comparison: own is what this replica found, others what other members
// said, by their ids.
type compared struct {
	index, revision uint64
	own             stateHash
	others          map[string]stateHash
}

func newClaims() *claims { return &claims{doubts: make(chan uint64, 1)} }

// applied notes what this replica found. What the entry itself claims is only a reason to
// ask the others.
func (c *claims) applied(found state.Comparison) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) == claimsKept {
		c.entries = slices.Delete(c.entries, 0, 1)
	}
	c.entries = append(c.entries, &compared{
		index: found.Index, revision: found.Revision, own: found.Got, others: map[string]stateHash{},
	})
	if !found.Agrees() {
		c.doubt(found.Index)
	}
}

// heard notes what another member claims, and returns what this replica found there, if it
// has come there.
func (c *claims) heard(index uint64, member string, hash stateHash) (own stateHash, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := c.at(index)
	if entry == nil {
		return own, false
	}
	if before, heard := entry.others[member]; hash != entry.own && (!heard || before != hash) {
		c.doubt(index)
	}
	entry.others[member] = hash
	return entry.own, true
}

// doubt is called under c.mu, so there is room for what is sent.
func (c *claims) doubt(index uint64) {
	select {
	case earlier := <-c.doubts:
		index = max(index, earlier)
	default:
	}
	c.doubts <- index
}

// at is called under c.mu.
func (c *claims) at(index uint64) *compared {
	for _, entry := range c.entries {
		if entry.index == index {
			return entry
		}
	}
	return nil
}

// get returns a copy of a comparison that is remembered.
func (c *claims) get(index uint64) (entry compared, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.at(index)
	if found == nil {
		return entry, false
	}
	entry = *found
	entry.others = make(map[string]stateHash, len(found.others))
	for member, hash := range found.others {
		entry.others[member] = hash
	}
	return entry, true
}

// opinion is what the voters' claims say of this replica's.
type opinion int

const (
	// undecided: no state has most voters yet.
	undecided opinion = iota
	// split: all voters have spoken, and no state has most of them.
	split
	// agreed: most voters have the state of this replica.
	agreed
	// outvoted: most voters agree on another.
	outvoted
)

// judge counts the voters for each state. Members without a vote are judged like others,
// and count for nothing.
func (e *compared) judge(self string, voters []string) (opinion, stateHash) {
	count, spoken := map[stateHash]int{}, 0
	for _, voter := range voters {
		hash, known := e.others[voter]
		if voter == self {
			hash, known = e.own, true
		}
		if known {
			count[hash]++
			spoken++
		}
	}
	for hash, n := range count {
		switch {
		case n <= len(voters)/2:
		case hash == e.own:
			return agreed, hash
		default:
			return outvoted, hash
		}
	}
	if len(voters) > 0 && spoken == len(voters) {
		return split, stateHash{}
	}
	return undecided, stateHash{}
}
