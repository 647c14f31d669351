package replica

import (
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/replica/segments"
)

// LogFiles are files in which a Memory keeps its log, for tests that lose what was not synced. A crash is theirs to do, before that of the
// Memory.
type LogFiles interface {
	// Open opens what survived.
	Open() (*segments.Log, error)
	// Wipe removes everything.
	Wipe()
}

// openFiles gives a storage the log of the files, if they keep it.
func (m *Memory) openFiles(s *Storage) (*Storage, error) {
	if m.Files == nil {
		return s, nil
	}
	log, err := m.Files.Open()
	if errors.Is(err, segments.ErrDamaged) {
		err = fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.segments = log
	turns := logTurns{Log: log, turn: make(chan struct{}, 1)}
	s.logs, s.sliced, s.dropSpares = turns, false, turns.DropSpares
	s.closers = append(s.closers, turns)
	return s, nil
}

// logTurns lets those who write to a log wait for each other by a channel: while they wait at a mutex, and a disk of a test takes its
// time, a bubble of fake time would stand still.
type logTurns struct {
	*segments.Log
	turn chan struct{}
}

func (l logTurns) take() (end func()) {
	l.turn <- struct{}{}
	return func() { <-l.turn }
}

// StoreLog implements raft.LogStore.
func (l logTurns) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs implements raft.LogStore.
func (l logTurns) StoreLogs(entries []*raft.Log) error {
	defer l.take()()
	return l.Log.StoreLogs(entries)
}

// DeleteRange implements raft.LogStore.
func (l logTurns) DeleteRange(low, high uint64) error {
	defer l.take()()
	return l.Log.DeleteRange(low, high)
}

// DropSpares removes the files that are kept to be written again.
func (l logTurns) DropSpares() error {
	defer l.take()()
	return l.Log.DropSpares()
}

// Close implements io.Closer.
func (l logTurns) Close() error {
	defer l.take()()
	return l.Log.Close()
}

func segmentEntries(log *segments.Log) (entries []StoredEntry) {
	first, _ := log.FirstIndex()
	last, _ := log.LastIndex()
	for i := first; i != 0 && i <= last; i++ {
		var l raft.Log
		if log.GetLog(i, &l) == nil {
			entries = append(entries, StoredEntry{l.Index, l.Term, crc32.ChecksumIEEE(l.Data)})
		}
	}
	return entries
}
