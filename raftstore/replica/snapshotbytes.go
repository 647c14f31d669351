package replica

import (
	"io"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/state"
)

// countedSnapshots counts what is written to snapshots, those that arrive too.
type countedSnapshots struct {
	raft.SnapshotStore
	bytes *atomic.Uint64
}

// Create implements raft.SnapshotStore.
func (c countedSnapshots) Create(
	version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration, configurationIndex uint64, trans raft.Transport,
) (raft.SnapshotSink, error) {
	sink, err := c.SnapshotStore.Create(version, index, term, configuration, configurationIndex, trans)
	if err != nil {
		return nil, err
	}
	return countedSink{sink, c.bytes}, nil
}

type countedSink struct {
	raft.SnapshotSink
	bytes *atomic.Uint64
}

// Write implements io.Writer.
func (c countedSink) Write(b []byte) (int, error) {
	n, err := c.SnapshotSink.Write(b)
	c.bytes.Add(uint64(n))
	return n, err
}

// hold is the sink's, if it is a holder.
func (c countedSink) hold(s *state.Snapshot) bool {
	h, ok := c.SnapshotSink.(holder)
	return ok && h.hold(s)
}

// countedReader counts what is read to restore a snapshot.
type countedReader struct {
	io.Reader
	bytes *atomic.Uint64
}

// Read implements io.Reader.
func (c countedReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.bytes.Add(uint64(n))
	return n, err
}
