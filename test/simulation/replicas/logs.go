package replicas

import (
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/replica/memorylog"
)

// lookAtLead checks that a term has one leader, and that a new one has all that was committed.
func (j *judge) lookAtLead(s *server, store *raftstore.Store) {
	l := store.Leadership()
	if !l.Leader {
		return
	}
	id := s.disk.Look(false).MemberID
	before, known := j.leads[l.Term]
	switch {
	case known && before != id:
		j.broken("%s and %s lead in term %d", before, id, l.Term)
	case known:
		return
	}
	j.leads[l.Term] = id
	j.world.did.Leaders++
	j.world.note("leader %s %d", id, l.Term)
	j.compareLogs(s)
}

// compareLogs checks the logs of all servers: where two have the same entry, all before it is the same; and the leader has what any
// server has applied.
func (j *judge) compareLogs(leader *server) {
	lead := entriesOf(leader.disk.Look(true))
	for _, s := range j.world.servers {
		if s == leader || s == j.former {
			continue
		}
		other := entriesOf(s.disk.Look(true))
		for index := min(lead.last, other.last); index >= max(lead.first, other.first) && index > 0; index-- {
			if lead.term(index) == other.term(index) {
				j.same(leader, s, lead, other, index)
				break
			}
			if applied := j.sights[s].index; s.running() != nil && index <= applied {
				j.broken("the leader %s lacks entry %d of term %d, which %s has applied", leader.name, index, other.term(index), s.name)
			}
		}
		if applied := j.sights[s].index; s.running() != nil && applied > lead.last && applied > lead.snapshot {
			j.broken("the leader %s has %d entries, %s has applied %d", leader.name, lead.last, s.name, applied)
		}
	}
}

func (j *judge) same(a, b *server, one, two storedLog, to uint64) {
	for index := max(one.first, two.first); index <= to; index++ {
		if x, y := one.at(index), two.at(index); x != y {
			j.broken("%s and %s have entry %d in common and differ at %d: %+v, %+v", a.name, b.name, to, index, x, y)
		}
	}
}

type storedLog struct {
	first, last, snapshot uint64
	entries               []memorylog.Entry
}

func entriesOf(c memorylog.Contents) storedLog {
	l := storedLog{snapshot: c.SnapshotIndex, entries: c.Entries}
	if n := len(c.Entries); n > 0 {
		l.first, l.last = c.Entries[0].Index, c.Entries[n-1].Index
	}
	return l
}

func (l storedLog) at(index uint64) memorylog.Entry { return l.entries[index-l.first] }
func (l storedLog) term(index uint64) uint64        { return l.at(index).Term }
