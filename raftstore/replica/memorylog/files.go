package memorylog

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/replica/segments"
	"github.com/setpoint-io/setpoint/raftstore/replica/termstore"
)

// Files keep a log, for tests that lose what was not synced. A crash is theirs to do, before that of the rest of the disk.
type Files interface {
	// Open opens what survived.
	Open() (*segments.Log, error)
	// Wipe removes everything.
	Wipe()
}

// Turns lets those who write to a log wait for each other by a channel: while they wait at a mutex, and a disk of a test takes its
// time, a bubble of fake time would stand still.
type Turns struct {
	*segments.Log
	turn chan struct{}
}

// InTurns makes those who write to a log wait so.
func InTurns(log *segments.Log) Turns { return Turns{Log: log, turn: make(chan struct{}, 1)} }

func (l Turns) take() (end func()) {
	l.turn <- struct{}{}
	return func() { <-l.turn }
}

// StoreLog implements raft.LogStore.
func (l Turns) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs implements raft.LogStore.
func (l Turns) StoreLogs(entries []*raft.Log) error {
	defer l.take()()
	return l.Log.StoreLogs(entries)
}

// DeleteRange implements raft.LogStore.
func (l Turns) DeleteRange(low, high uint64) error {
	defer l.take()()
	return l.Log.DeleteRange(low, high)
}

// DropSpares removes the files that are kept to be written again.
func (l Turns) DropSpares() error {
	defer l.take()()
	return l.Log.DropSpares()
}

// Close implements io.Closer.
func (l Turns) Close() error {
	defer l.take()()
	return l.Log.Close()
}

// Contents is what a disk holds, for tests that judge each step.
type Contents struct {
	// MemberID is whose log, term and vote these are.
	MemberID string
	// Term and Vote are what raft has stored, VoteTerm the term of the vote; "" if there is none.
	Term, VoteTerm uint64
	Vote           string
	// SnapshotIndex and SnapshotTerm are those of the newest snapshot, 0 without one.
	SnapshotIndex, SnapshotTerm uint64
	// Entries are those of the log, oldest first, unless they were not asked for.
	Entries []Entry
}

// Entry is one entry of a log. Sum is a checksum of its data.
type Entry struct {
	Index, Term uint64
	Sum         uint32
}

// Voted returns contents with the term and the vote of a stable store.
func Voted(stable map[string][]byte) Contents {
	return Contents{
		MemberID: string(unsealed(stable, termstore.WriterKey)), Vote: string(unsealed(stable, termstore.VoteCandidateKey)),
		Term: number(stable, termstore.TermKey), VoteTerm: number(stable, termstore.VoteTermKey),
	}
}

// unsealed is a stable value without its checksum.
func unsealed(stable map[string][]byte, key string) []byte {
	value := stable[key]
	return value[:max(0, len(value)-crc32.Size)]
}

func number(stable map[string][]byte, key string) uint64 {
	value := unsealed(stable, key)
	if len(value) != 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(value)
}

// EntriesOf are those of a log.
func EntriesOf(log raft.LogStore) (entries []Entry) {
	first, _ := log.FirstIndex()
	last, _ := log.LastIndex()
	for i := first; i != 0 && i <= last; i++ {
		var l raft.Log
		if log.GetLog(i, &l) == nil {
			entries = append(entries, Entry{l.Index, l.Term, crc32.ChecksumIEEE(l.Data)})
		}
	}
	return entries
}
