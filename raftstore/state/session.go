package state

import (
	"fmt"

	"github.com/google/btree"

	"github.com/setpoint-io/setpoint/raftstore/command"
)

const (
	// MaxSessions is the most sessions open at once; the one longest unused makes
	// room for a new one.
	MaxSessions = 64
	// SessionWindow is how many sequence numbers, counted back from the highest,
	// a session remembers results for.
	SessionWindow = 8192
)

// session is one client of the log: a replica, for as long as it runs.
type session struct {
	id uint64
	// used is the index of the last entry with a command of the session.
	used    uint64
	highest uint64
	// results are the results given, by sequence. A copy-on-write tree, so that a
	// snapshot takes them in no time.
	results *btree.BTreeG[remembered]
}

type remembered struct {
	sequence uint64
	result   command.Result
}

// sessionTable holds the open sessions in order of their ids.
type sessionTable struct {
	open   []*session
	lastID uint64
}

func newSession(id, used uint64) *session {
	less := func(a, b remembered) bool { return a.sequence < b.sequence }
	return &session{id: id, used: used, results: btree.NewG(treeDegree, less)}
}

// once judges a command unless its session remembers having done so.
func (s *State) once(c *command.Command) command.Result {
	if c.Session == 0 {
		return s.judge(c)
	}
	ses := s.sessions.find(c.Session)
	if ses == nil {
		return s.refuse(command.SessionUnknown, fmt.Sprintf("session %d", c.Session))
	}
	ses.used = s.meta.index
	if ses.hasForgotten(c.Sequence) {
		return s.refuse(command.TooOld, fmt.Sprintf("sequence %d, highest %d", c.Sequence, ses.highest))
	}
	if past, ok := ses.results.Get(remembered{sequence: c.Sequence}); ok {
		return past.result
	}
	result := s.judge(c)
	ses.remember(c.Sequence, result)
	return result
}

func (ses *session) hasForgotten(sequence uint64) bool {
	return ses.highest >= SessionWindow && sequence <= ses.highest-SessionWindow
}

func (ses *session) remember(sequence uint64, result command.Result) {
	ses.highest = max(ses.highest, sequence)
	ses.results.ReplaceOrInsert(remembered{sequence, result})
	for {
		oldest, ok := ses.results.Min()
		if !ok || !ses.hasForgotten(oldest.sequence) {
			return
		}
		ses.results.DeleteMin()
	}
}

func (t *sessionTable) find(id uint64) *session {
	for _, ses := range t.open {
		if ses.id == id {
			return ses
		}
	}
	return nil
}

// start opens a session. Its id is the index of the entry, or the next free
// number when one entry opens several: new in this log in any case.
func (t *sessionTable) start(index uint64) uint64 {
	if len(t.open) >= MaxSessions {
		t.end(t.longestUnused())
	}
	t.lastID = max(t.lastID+1, index)
	t.open = append(t.open, newSession(t.lastID, index))
	return t.lastID
}

// longestUnused returns the id of the session to evict, the lowest of several.
func (t *sessionTable) longestUnused() uint64 {
	oldest := t.open[0]
	for _, ses := range t.open {
		if ses.used < oldest.used {
			oldest = ses
		}
	}
	return oldest.id
}

func (t *sessionTable) end(id uint64) {
	kept := make([]*session, 0, MaxSessions)
	for _, ses := range t.open {
		if ses.id != id {
			kept = append(kept, ses)
		}
	}
	t.open = kept
}

// clone returns a copy that further commands do not change.
func (t *sessionTable) clone() sessionTable {
	c := sessionTable{lastID: t.lastID}
	for _, ses := range t.open {
		copied := *ses
		copied.results = ses.results.Clone()
		c.open = append(c.open, &copied)
	}
	return c
}
