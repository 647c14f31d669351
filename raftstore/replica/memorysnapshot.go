package replica

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/replica/heldstate"
	"github.com/setpoint-io/setpoint/raftstore/replica/sealed"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// memorySnapshot is a finished snapshot: its bytes, or, if they are nil, the state itself.
type memorySnapshot struct {
	meta  raft.SnapshotMeta
	data  []byte
	state *state.Snapshot
}

// open returns what Restore reads.
func (s *memorySnapshot) open() io.ReadCloser {
	if s.state != nil {
		return heldstate.Source(s.state)
	}
	return io.NopCloser(bytes.NewReader(s.data))
}

// holder is a sink that may take a state in place of its bytes.
type holder interface {
	// hold reports whether it took the state.
	hold(*state.Snapshot) bool
}

// memorySink is one being written. It appears on the disk when closed.
type memorySink struct {
	bytes.Buffer
	handle *memoryHandle
	meta   raft.SnapshotMeta
	state  *state.Snapshot
}

// hold implements holder.
func (s *memorySink) hold(taken *state.Snapshot) bool {
	if s.handle.disk.Alone {
		s.state = taken
	}
	return s.handle.disk.Alone
}

// Create implements raft.SnapshotStore.
func (h *memoryHandle) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	if space, _ := h.disk.measure(); space.TotalBytes > 0 {
		if err := sealed.RoomFor(space); err != nil {
			return nil, err
		}
	}
	return &memorySink{handle: h, meta: raft.SnapshotMeta{
		Version: version, ID: fmt.Sprintf("%d-%d", term, index), Index: index, Term: term,
		Configuration: configuration, ConfigurationIndex: configurationIndex,
	}}, nil
}

// Write implements io.Writer.
func (s *memorySink) Write(b []byte) (int, error) {
	if err := s.handle.with(func(m *Memory) error { return m.snapshotFault }); err != nil {
		n, _ := s.Buffer.Write(b[:len(b)/2])
		return n, err
	}
	return s.Buffer.Write(b)
}

// ID implements raft.SnapshotSink.
func (s *memorySink) ID() string { return s.meta.ID }

// Cancel implements raft.SnapshotSink.
func (s *memorySink) Cancel() error { return nil }

// Close implements raft.SnapshotSink.
func (s *memorySink) Close() error {
	time.Sleep(s.handle.disk.SnapshotDelay)
	return s.handle.with(func(m *Memory) error {
		s.meta.Size = int64(s.Len())
		m.snapshots = append([]*memorySnapshot{{s.meta, s.Bytes(), s.state}}, m.snapshots...)
		m.snapshots = m.snapshots[:min(len(m.snapshots), sealed.Kept)]
		return nil
	})
}

// List implements raft.SnapshotStore.
func (h *memoryHandle) List() (metas []*raft.SnapshotMeta, err error) {
	err = h.with(func(m *Memory) error {
		for _, s := range m.snapshots {
			meta := s.meta
			metas = append(metas, &meta)
		}
		return nil
	})
	return metas, err
}

// Open implements raft.SnapshotStore.
func (h *memoryHandle) Open(id string) (meta *raft.SnapshotMeta, source io.ReadCloser, err error) {
	err = h.with(func(m *Memory) error {
		for _, s := range m.snapshots {
			if s.meta.ID == id {
				copied := s.meta
				meta, source = &copied, s.open()
				return nil
			}
		}
		return fmt.Errorf("no snapshot %q", id)
	})
	return meta, source, err
}
