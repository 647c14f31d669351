package replica

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/replica/heldstate"
	"github.com/setpoint-io/setpoint/raftstore/replica/sealed"
	"github.com/setpoint-io/setpoint/raftstore/replica/snapshotpace"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// machine lets raft drive the state. Raft calls it from one goroutine.
type machine struct{ replica *Replica }

var _ raft.BatchingFSM = (*machine)(nil)

// ApplyBatch implements raft.BatchingFSM. A response is []command.Result or error.
func (m *machine) ApplyBatch(logs []*raft.Log) []any {
	responses := make([]any, len(logs))
	for i, l := range logs {
		responses[i] = m.Apply(l)
	}
	if m.replica.Leads(m.replica.Term()) {
		m.replica.teller.Notify()
	}
	return responses
}

// Apply implements raft.FSM. After the first entry that cannot be applied nothing
// is: the state stays at the last one that could.
func (m *machine) Apply(l *raft.Log) any {
	if l.Type != raft.LogCommand {
		return nil
	}
	if err := m.replica.Failed(); err != nil {
		return err
	}
	if m.replica.cfg.Applying != nil {
		m.replica.cfg.Applying(l.Index)
	}
	start := time.Now()
	results, err := m.apply(l)
	m.replica.applies.Record(time.Since(start))
	if err != nil {
		m.replica.fail(fmt.Errorf("applying log entry %d: %w", l.Index, err))
		return m.replica.Failed()
	}
	// A replica that has stopped meanwhile answers nothing.
	if err := m.replica.Failed(); err != nil {
		return err
	}
	return results
}

func (m *machine) apply(l *raft.Log) (results []command.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("invariant broken: %v\n%s", p, debug.Stack())
		}
	}()
	entry, err := command.Unmarshal(l.Data)
	if err != nil {
		return nil, err
	}
	entry.UnixNanos = unixNanos(l.AppendedAt)
	results = m.replica.state.Apply(l.Index, l.Term, entry)
	return results, errors.Join(m.checkCluster(), m.checkLevel(), m.replica.keepLife())
}

// unixNanos is 0 for a time that an entry of an older release does not have.
func unixNanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// checkLevel notices that the log goes on in formats that this release does not
// know. Stopping comes before the first of them.
func (m *machine) checkLevel() error {
	level, highest := m.replica.state.Root().FeatureLevel, m.replica.cfg.FeatureLevel
	if highest == 0 || level <= highest {
		return nil
	}
	return fmt.Errorf("%w: the cluster is at feature level %d, this release knows up to %d", ErrFeatureLevel, level, highest)
}

// checkCluster notices that the log belongs to another cluster than configured.
func (m *machine) checkCluster() error {
	got, want := m.replica.state.Root().ClusterID, m.replica.cfg.ClusterID
	if want != "" && got != "" && got != want {
		return fmt.Errorf("%w: log of cluster %q, this is %q", ErrForeignData, got, want)
	}
	return nil
}

// Snapshot implements raft.FSM.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	if err := m.replica.Failed(); err != nil {
		return nil, err
	}
	start := time.Now()
	taken := m.replica.state.Snapshot()
	m.replica.applies.Record(time.Since(start))
	return &stateSnapshot{snapshot: taken, replica: m.replica}, nil
}

// Restore implements raft.FSM.
func (m *machine) Restore(source io.ReadCloser) error {
	defer source.Close()
	err := m.restore(source)
	if errors.Is(err, state.ErrNewerSnapshot) {
		err = fmt.Errorf("%w: %w", ErrFeatureLevel, err)
	}
	if err == nil {
		err = m.checkLevel()
	}
	if errors.Is(err, ErrFeatureLevel) {
		// Raft would go on to an older snapshot, or ask for this one for ever.
		m.replica.fail(err)
	}
	if err == nil {
		err = m.replica.keepLife()
	}
	return errors.Join(err, m.checkCluster())
}

// restore takes the state of a source.
func (m *machine) restore(source io.ReadCloser) error {
	if held := heldstate.Of(source); held != nil {
		m.replica.state.Adopt(held)
		return nil
	}
	return m.replica.state.Restore(source)
}

// stateSnapshot is a state on its way to disk.
type stateSnapshot struct {
	snapshot *state.Snapshot
	replica  *Replica
}

// Persist implements raft.FSMSnapshot.
func (s *stateSnapshot) Persist(sink raft.SnapshotSink) error {
	if h, ok := sink.(holder); ok && h.hold(s.snapshot) {
		return sink.Close()
	}
	slow, err := s.replica.paced(sink)
	if err != nil {
		return fmt.Errorf("writing snapshot: %w", joinCancel(err, sink))
	}
	defer slow.Close()
	if _, err := s.snapshot.WriteTo(slow); err != nil {
		return fmt.Errorf("writing snapshot: %w", joinCancel(err, sink))
	}
	return sink.Close()
}

// paced wraps a snapshot's sink. The writer fails once the replica closes. The
// library keeps its handle of the file to itself and syncs at the end only.
func (r *Replica) paced(sink raft.SnapshotSink) (*snapshotpace.Writer, error) {
	if r.cfg.Storage.snapshotDir == "" {
		return snapshotpace.NewWriter(r.ctx, sink, nil), nil
	}
	file, err := os.Open(filepath.Join(r.cfg.Storage.snapshotDir, sink.ID()+sealed.UnfinishedSuffix, "state.bin"))
	if err != nil {
		return nil, err
	}
	return snapshotpace.NewWriter(r.ctx, sink, file), nil
}

func joinCancel(err error, sink raft.SnapshotSink) error {
	if cancelErr := sink.Cancel(); cancelErr != nil {
		return fmt.Errorf("%w; removing it: %w", err, cancelErr)
	}
	return err
}

// Release implements raft.FSMSnapshot.
func (s *stateSnapshot) Release() {}
