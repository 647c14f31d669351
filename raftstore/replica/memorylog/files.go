package memorylog

import (
	"encoding/binary"
	"hash/crc32"
	"sync/atomic"

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
	// deletes is the first entry of an end of the log that is being deleted, or could not be; 0 if none is.
	deletes *atomic.Uint64
}

// InTurns makes those who write to a log wait so.
func InTurns(log *segments.Log) Turns {
	return Turns{Log: log, turn: make(chan struct{}, 1), deletes: &atomic.Uint64{}}
}

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
	if last, _ := l.LastIndex(); high >= last {
		l.deletes.Store(low)
	}
	err := l.Log.DeleteRange(low, high)
	if err == nil {
		l.deletes.Store(0)
	}
	return err
}

// kept is the last entry that no power cut may take: of those that are being deleted it may take each.
func (l Turns) kept() uint64 {
	low := l.deletes.Load() // first: a deletion that ends in between has told LastIndex
	last, _ := l.LastIndex()
	if low > 0 {
		return min(last, low-1)
	}
	return last
}

// LookAt fills in what the log holds.
func (l Turns) LookAt(c *Contents) { c.Entries, c.Kept = EntriesOf(l), l.kept() }

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
	// Entries are those of the log, oldest first, unless they were not asked for; no power cut may take one up to Kept.
	Entries []Entry
	Kept    uint64
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
