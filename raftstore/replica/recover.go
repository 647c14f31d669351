package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

const (
	// IndexGap and TermGap are how far the log of a cluster's next life begins
	// behind the log of the one before. No server of the former life has a log as
	// new, so none wins an election against those of the next, and what it brings
	// along is replaced. And no fence of the former life is ever met again.
	IndexGap = 1_000_000_000
	TermGap  = 1_000_000

	// offlineStall is how long one write may take while no replica runs.
	offlineStall = time.Minute
)

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
// nothing. Errors wrap ErrNoState, ErrCorrupt, ErrStateLost or ErrDiverged.
func Examine(ctx context.Context, storage *Storage) (*Stored, error) {
	e := newExaminer(storage)
	mark, err := storage.marker.load()
	if err != nil {
		return nil, err
	}
	if mark != nil && (mark.State == markDamaged || mark.State == markDiscarding) {
		return nil, fmt.Errorf("%w: noticed while it was in use", ErrCorrupt)
	}
	if err := guarded(ctx, e.verify); err != nil {
		return nil, err
	}
	if e.last == 0 && e.newest == nil {
		return nil, emptyError(mark)
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

func emptyError(mark *marker) error {
	if mark != nil && mark.State == markHeld {
		return ErrStateLost
	}
	return ErrNoState
}

// examiner reads a storage without raft.
type examiner struct {
	storage *Storage
	log     *checkedLog
	stable  *checkedStable
	state   *state.State

	newest               *raft.SnapshotMeta
	term, last, lastTerm uint64
	configuration        raft.Configuration
	divergence           *state.Divergence
}

func newExaminer(storage *Storage) *examiner {
	guard := &diskGuard{fail: func(error) {}, limit: offlineStall}
	e := &examiner{
		storage: storage, log: newCheckedLog(storage.logs, guard, 1<<62),
		stable: &checkedStable{inner: storage.stable, guard: guard},
	}
	e.state = state.New(state.Options{OnDivergence: func(d state.Divergence) { e.divergence = &d }})
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
	if e.divergence != nil {
		return fmt.Errorf("%w: at revision %d", ErrDiverged, e.divergence.Revision)
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
func (e *examiner) checkReach(mark *marker) error {
	water, err := e.storage.watermark.loadWatermark()
	if err != nil {
		return err
	}
	if mark != nil && water.ServerID == mark.ServerID && (e.last < water.Index || e.term < water.Term) {
		return fmt.Errorf("%w: the log ends at %d in term %d, it was at %d in term %d",
			ErrStateLost, e.last, e.term, water.Index, water.Term)
	}
	return nil
}

// NextLife is where the log of a cluster begins again: with one snapshot.
type NextLife struct {
	// ServerID is whose data directory it is, and one of Servers.
	ServerID string
	// Servers are the members of the new configuration. Those without a vote may
	// come back with the former life's state or with none.
	Servers []ServerStatus
	// Root is the state to begin with.
	Root *state.Root
	// ClusterID is the identity of the cluster from now on; "" lets the first leader
	// name it.
	ClusterID string
	// Revisions are added to the revision, so that every client lists again.
	Revisions uint64
	// LastIndex and LastTerm are where the log of the former life ended.
	LastIndex, LastTerm uint64
}

// Found writes the beginning of a cluster's next life into an empty storage. Errors
// wrap ErrHasState if it is not empty.
func (n *NextLife) Found(ctx context.Context, storage *Storage) error {
	e := newExaminer(storage)
	mark, err := storage.marker.load()
	if err != nil {
		return err
	}
	if err := guarded(ctx, e.verify); err != nil {
		return err
	}
	// One that is fresh waited for its peers and never voted.
	if e.last > 0 || mark != nil && mark.State != markFresh {
		return ErrHasState
	}
	if err := n.write(e); err != nil {
		return err
	}
	return storage.marker.save(&marker{ServerID: n.ServerID, ClusterID: n.ClusterID})
}

// Replace puts the beginning of a cluster's next life in the place of what the
// storage holds. A crash leaves either the one or the other.
func (n *NextLife) Replace(ctx context.Context, storage *Storage) error {
	e := newExaminer(storage)
	if err := guarded(ctx, e.verify); err != nil {
		return err
	}
	if e.last != n.LastIndex || e.lastTerm != n.LastTerm {
		return fmt.Errorf("%w: it has changed meanwhile", ErrHasState)
	}
	n.LastTerm = max(n.LastTerm, e.term)
	if err := n.write(e); err != nil {
		return err
	}
	first, err := e.log.FirstIndex()
	if err != nil || first == 0 {
		return err
	}
	last, err := e.log.LastIndex()
	if err != nil {
		return err
	}
	return e.log.DeleteRange(first, last)
}

// write stores term and snapshot. The term comes first: it is harmless alone.
func (n *NextLife) write(e *examiner) error {
	index, term := n.LastIndex+IndexGap, n.LastTerm+TermGap
	snapshot, ok := n.Root.Rebirth(index, n.Revisions, n.ClusterID)
	if !ok {
		return fmt.Errorf("revision %d has no room for %d more", n.Root.Revision, n.Revisions)
	}
	if err := e.stable.SetUint64([]byte("CurrentTerm"), term); err != nil {
		return err
	}
	if n.ClusterID != "" {
		if err := e.stable.Set(clusterIDKey, []byte(n.ClusterID)); err != nil {
			return err
		}
	}
	sink, err := e.storage.snapshots.Create(raft.SnapshotVersionMax, index, term, n.configuration(), index, addressEncoder{})
	if err != nil {
		return fmt.Errorf("writing snapshot: %w", err)
	}
	if _, err := snapshot.WriteTo(sink); err != nil {
		return fmt.Errorf("writing snapshot: %w", joinCancel(err, sink))
	}
	return sink.Close()
}

func (n *NextLife) configuration() (c raft.Configuration) {
	for _, s := range n.Servers {
		suffrage := raft.Nonvoter
		if s.Voter {
			suffrage = raft.Voter
		}
		c.Servers = append(c.Servers, raft.Server{Suffrage: suffrage, ID: raft.ServerID(s.ID), Address: raftAddress(s.Server)})
	}
	return c
}

// addressEncoder is all that a snapshot store asks of a transport.
type addressEncoder struct{ raft.Transport }

// EncodePeer implements raft.Transport.
func (addressEncoder) EncodePeer(_ raft.ServerID, address raft.ServerAddress) []byte {
	return []byte(address)
}

// ExamineFiles is Examine for the files below dir, which no other process may use.
func ExamineFiles(ctx context.Context, dir string, logger *slog.Logger) (stored *Stored, err error) {
	err = withFiles(ctx, dir, logger, func(s *Storage) error {
		stored, err = Examine(ctx, s)
		return err
	})
	return stored, err
}

// FoundFiles and ReplaceFiles are Found and Replace for the files below dir.
func (n *NextLife) FoundFiles(ctx context.Context, dir string, logger *slog.Logger) error {
	return withFiles(ctx, dir, logger, func(s *Storage) error { return n.Found(ctx, s) })
}

// ReplaceFiles: see FoundFiles.
func (n *NextLife) ReplaceFiles(ctx context.Context, dir string, logger *slog.Logger) error {
	return withFiles(ctx, dir, logger, func(s *Storage) error { return n.Replace(ctx, s) })
}

func withFiles(ctx context.Context, dir string, logger *slog.Logger, do func(*Storage) error) error {
	storage, err := OpenFiles(ctx, dir, logger)
	if err != nil {
		return err
	}
	return errors.Join(do(storage), storage.Close())
}
