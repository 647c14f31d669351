package replica

import (
	"errors"
	"fmt"

	"github.com/setpoint-io/setpoint/raftstore/replica/memorylog"
	"github.com/setpoint-io/setpoint/raftstore/replica/segments"
)

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
	turns := memorylog.InTurns(log)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.segments = turns
	s.logs, s.sliced, s.dropSpares = turns, false, turns.DropSpares
	s.closers = append(s.closers, turns)
	return s, nil
}

// Look returns the contents, also while the disk hangs or after a crash; of a log in memory no entries.
func (m *Memory) Look(entries bool) memorylog.Contents {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := memorylog.Voted(m.stable)
	if m.mark != nil {
		c.MemberID = m.mark.ServerID
	}
	if len(m.snapshots) > 0 {
		c.SnapshotIndex, c.SnapshotTerm = m.snapshots[0].meta.Index, m.snapshots[0].meta.Term
	}
	if m.segments.Log != nil && entries {
		m.segments.LookAt(&c)
	}
	return c
}
