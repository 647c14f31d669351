package replica

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/setpoint-io/setpoint/raftstore/replica/termstore"
)

// Contents is what a Memory holds, for tests that judge each step.
type Contents struct {
	// MemberID is whose log, term and vote these are.
	MemberID string
	// Term and Vote are what raft has stored, VoteTerm the term of the vote; "" if there is none.
	Term, VoteTerm uint64
	Vote           string
	// SnapshotIndex and SnapshotTerm are those of the newest snapshot, 0 without one.
	SnapshotIndex, SnapshotTerm uint64
	// Entries are those of the log, oldest first, unless they were not asked for.
	Entries []StoredEntry
}

// StoredEntry is one entry of a log. Sum is a checksum of its data.
type StoredEntry struct {
	Index, Term uint64
	Sum         uint32
}

// Look returns the contents, also while the disk hangs or after a crash.
func (m *Memory) Look(entries bool) Contents {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := Contents{
		MemberID: string(m.unsealed(termstore.WriterKey)), Vote: string(m.unsealed(termstore.VoteCandidateKey)),
		Term: m.number(termstore.TermKey), VoteTerm: m.number(termstore.VoteTermKey),
	}
	if m.mark != nil {
		c.MemberID = m.mark.ServerID
	}
	if len(m.snapshots) > 0 {
		c.SnapshotIndex, c.SnapshotTerm = m.snapshots[0].meta.Index, m.snapshots[0].meta.Term
	}
	if m.segments != nil && entries {
		c.Entries = segmentEntries(m.segments)
	}
	for i := m.logs.First; entries && i != 0 && i <= m.logs.Last; i++ {
		if l, ok := m.logs.Entries[i]; ok {
			c.Entries = append(c.Entries, StoredEntry{l.Index, l.Term, crc32.ChecksumIEEE(l.Data)})
		}
	}
	return c
}

// unsealed is a stable value without its checksum.
func (m *Memory) unsealed(key string) []byte {
	value := m.stable[key]
	return value[:max(0, len(value)-crc32.Size)]
}

func (m *Memory) number(key string) uint64 {
	value := m.unsealed(key)
	if len(value) != 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(value)
}
