package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/replica/marks"
	"github.com/setpoint-io/setpoint/raftstore/replica/termstore"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// offlineStall is how long one write may take while no replica runs.
const offlineStall = time.Minute

var (
	// ErrNoState: the data directory holds no log and no snapshot.
	ErrNoState = errors.New("the data directory holds no state")
	// ErrHasState: the data directory holds state, which is never deleted.
	ErrHasState = errors.New("the data directory holds state")
)

// Stored is what a server that does not run has on its disk.
type Stored struct {
	// ServerID and ClusterID say whose it is; ClusterID may be "".
	ServerID, ClusterID string
	// Term is the newest the server knew. LastTerm and LastIndex are those of its
	// last entry: of two servers the one with the higher pair, compared in this
	// order, has everything that was acknowledged.
	Term, LastTerm, LastIndex uint64
	// Root is the state with the whole log applied, entries included of which
	// nobody can know whether they were committed.
	Root *state.Root
	// Servers is the newest configuration in the log.
	Servers []ServerStatus
}

// Examine reads and verifies all that a stopped server has stored, and changes
// nothing of it. Errors wrap ErrNoState, ErrCorrupt, ErrStateLost, ErrForeignData or ErrDiverged.
func Examine(ctx context.Context, storage *Storage) (*Stored, error) {
	e := newExaminer(storage)
	mark, err := storage.marks.Load()
	if err != nil {
		return nil, err
	}
	if mark != nil && (mark.State == marks.Damaged || mark.State == marks.Discarding) {
		return nil, fmt.Errorf("%w: noticed while it was in use", ErrCorrupt)
	}
	if err := guarded(ctx, storage.sizeBytes(), e.verify); err != nil {
		return nil, err
	}
	if e.last == 0 && e.newest == nil {
		return nil, emptyError(mark)
	}
	if mark != nil {
		if err := checkWriter(e.stable, MemberName(mark.ServerID), mark); err != nil {
			return nil, err
		}
	}
	if err := caught(func() error { return e.replay(ctx) }); err != nil {
		return nil, err
	}
	if err := e.checkReach(mark); err != nil {
		return nil, err
	}
	stored := &Stored{
		Term: e.term, LastTerm: e.lastTerm, LastIndex: e.last, Root: e.state.Root(), ClusterID: e.state.Root().ClusterID,
	}
	if mark != nil {
		stored.ServerID = mark.ServerID
	}
	for _, s := range e.configuration.Servers {
		stored.Servers = append(stored.Servers, ServerStatus{
			Server: Server{ID: string(s.ID), Address: plainAddress(s.Address)}, Voter: s.Suffrage == raft.Voter,
		})
	}
	return stored, nil
}

func emptyError(mark *marks.Marker) error {
	if mark != nil && mark.State == marks.Held {
		return ErrStateLost
	}
	return ErrNoState
}

// examiner reads a storage without raft.
type examiner struct {
	storage *Storage
	log     *checkedLog
	stable  *termstore.Store
	state   *state.State

	newest               *raft.SnapshotMeta
	term, last, lastTerm uint64
	configuration        raft.Configuration
	// compared is the last comparison in the log. Earlier ones count for nothing: a leader
	// that differed was replaced, and its successor compared anew.
	compared state.Comparison
}

func newExaminer(storage *Storage) *examiner {
	guard := &diskGuard{fail: func(error) {}, limit: offlineStall}
	e := &examiner{
		storage: storage, log: newCheckedLog(storage.logs, guard, 1<<62),
		stable: storage.terms(guard),
	}
	e.state = state.New(state.Options{OnComparison: func(c state.Comparison) { e.compared = c }})
	return e
}

// verify reads the log once, and finds where everything ends.
func (e *examiner) verify() (err error) {
	snapshots, err := e.storage.snapshots.List()
	if err != nil {
		return fmt.Errorf("listing snapshots: %w", err)
	}
	if len(snapshots) > 0 {
		e.newest = snapshots[0]
		e.last, e.lastTerm = e.newest.Index, e.newest.Term
	}
	if err := e.log.verifyAll(e.last); err != nil {
		return err
	}
	if e.term, err = e.stable.GetUint64([]byte("CurrentTerm")); err != nil && !isNotFound(err) {
		return err
	}
	last, err := e.log.LastIndex()
	if err != nil || last <= e.last {
		return err
	}
	var entry raft.Log
	if err := e.log.GetLog(last, &entry); err != nil {
		return err
	}
	e.last, e.lastTerm = last, entry.Term
	return nil
}

// replay builds the state from the newest snapshot and the log behind it.
func (e *examiner) replay(ctx context.Context) error {
	index, err := e.restore()
	if err != nil {
		return err
	}
	if e.newest == nil {
		if index, err = e.log.FirstIndex(); err != nil {
			return err
		}
		index--
	}
	for index++; index <= e.last; index++ {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := e.replayEntry(index); err != nil {
			return fmt.Errorf("log entry %d: %w", index, err)
		}
	}
	if !e.compared.Agrees() {
		return fmt.Errorf("%w: at revision %d", ErrDiverged, e.compared.Revision)
	}
	return nil
}

// restore loads the newest snapshot, if there is one, and returns its index.
func (e *examiner) restore() (uint64, error) {
	if e.newest == nil {
		return 0, nil
	}
	meta, source, err := e.storage.snapshots.Open(e.newest.ID)
	if err != nil {
		return 0, fmt.Errorf("%w: snapshot %s: %w", ErrCorrupt, e.newest.ID, err)
	}
	defer source.Close()
	if err := e.state.Restore(source); err != nil {
		return 0, fmt.Errorf("%w: snapshot %s: %w", ErrCorrupt, e.newest.ID, err)
	}
	e.configuration = meta.Configuration
	return meta.Index, nil
}

func (e *examiner) replayEntry(index uint64) error {
	var l raft.Log
	if err := e.log.GetLog(index, &l); err != nil {
		return err
	}
	switch l.Type {
	case raft.LogConfiguration:
		e.configuration = raft.DecodeConfiguration(l.Data)
	case raft.LogCommand:
		entry, err := command.Unmarshal(l.Data)
		if err != nil {
			return err
		}
		e.state.Apply(l.Index, l.Term, entry)
	}
	return nil
}

// checkReach refuses an old copy of the log: the server had acknowledged more.
func (e *examiner) checkReach(mark *marks.Marker) error {
	water, err := e.storage.marks.LoadWatermark()
	if err != nil {
		return err
	}
	if mark != nil && water.ServerID == mark.ServerID && (e.last < water.Index || e.term < water.Term) {
		return fmt.Errorf("%w: the log ends at %d in term %d, it was at %d in term %d",
			ErrStateLost, e.last, e.term, water.Index, water.Term)
	}
	return nil
}

// ExamineFiles is Examine for the files below dir, which no other process may use.
func ExamineFiles(ctx context.Context, dir string, logger *slog.Logger) (stored *Stored, err error) {
	err = withDisk(ctx, Files{Dir: dir, Logger: logger}, func(s *Storage) error {
		stored, err = Examine(ctx, s)
		return err
	})
	return stored, err
}

func withDisk(ctx context.Context, disk Disk, do func(*Storage) error) error {
	storage, err := disk.Open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(storage), storage.Close())
}
