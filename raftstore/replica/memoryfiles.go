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
	s.logs, s.sliced, s.dropSpares = log, false, log.DropSpares
	s.closers = append(s.closers, log)
	return s, nil
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
