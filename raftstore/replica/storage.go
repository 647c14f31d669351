package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/replica/diskreserve"
	"github.com/setpoint-io/setpoint/raftstore/replica/marks"
	"github.com/setpoint-io/setpoint/raftstore/replica/raftdir"
	"github.com/setpoint-io/setpoint/raftstore/replica/sealed"
	"github.com/setpoint-io/setpoint/raftstore/replica/termstore"
)

// SegmentsLevel is the feature level from which on logs are in segments. A release below it would take such a
// directory for one that lost its log. So a log that an older release began is moved only when no server of such a
// release can be a member any more: with the first start after that.
const SegmentsLevel = 3

const (
	// raftDir holds the log, term and vote.
	raftDir = "raft"
	// dirMode and fileMode keep the cluster's secrets to this user.
	dirMode, fileMode = 0o700, 0o600
)

// Storage is where a replica keeps its log, its term and vote, its snapshots, and
// apart from them the marker that says they exist and how far they reached. OpenFiles and Memory.Open make one; a Replica
// closes it.
type Storage struct {
	logs      raft.LogStore
	stable    raft.StableStore
	snapshots raft.SnapshotStore
	marks     marks.Store
	sizeBytes func() int64
	// freeBytes is the room inside the log's files.
	freeBytes func() int64
	// sliced: the log is deleted in slices, and its beginning while it grows.
	sliced bool
	// letMove allows that a log of an older release is moved with the next start.
	letMove func() error
	// dropSpares gives back the room of files that the log keeps to write them again.
	dropSpares func() error
	// space measures the free room; reserve is room held back, nil in memory.
	space   func() (Space, error)
	reserve *diskreserve.Reserve
	// snapshotDir is where snapshots are files, "" if they are not.
	snapshotDir string
	closers     []io.Closer
}

// OpenFiles opens the files below dir: raft/, snapshots/ and state-marker/, which
// are created if missing. A damaged file gives an error that wraps ErrCorrupt.
func OpenFiles(ctx context.Context, dir string, logger *slog.Logger) (*Storage, error) {
	for _, sub := range []string{raftDir, "snapshots", "state-marker"} {
		sub = filepath.Join(dir, sub)
		if err := os.MkdirAll(sub, dirMode); err != nil {
			return nil, fmt.Errorf("data directory: %w", err)
		}
		if err := os.Chmod(sub, dirMode); err != nil { // it may have been made before, and dir is not ours alone
			return nil, fmt.Errorf("data directory: %w", err)
		}
	}
	held, err := diskreserve.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	log, err := openRaft(ctx, filepath.Join(dir, raftDir))
	if err != nil {
		return nil, err
	}
	snapshots, err := sealed.Open(dir, logger, ErrCorrupt)
	if err != nil {
		return nil, fmt.Errorf("opening snapshots: %w", errors.Join(err, log.Close()))
	}
	return &Storage{
		logs: log.Log, stable: log.Stable, snapshots: snapshots,
		marks:       marks.Dir(filepath.Join(dir, marksDir)),
		sizeBytes:   log.Bytes,
		freeBytes:   log.RoomBytes,
		sliced:      log.InDatabase,
		letMove:     log.LetMove,
		dropSpares:  log.DropSpares,
		space:       func() (Space, error) { return diskreserve.FreeSpace(dir) },
		reserve:     held,
		snapshotDir: filepath.Join(dir, sealed.Dir),
		closers:     []io.Closer{log},
	}, nil
}

// openRaft opens raft/, within a time limit.
func openRaft(ctx context.Context, dir string) (*raftdir.Dir, error) {
	var log *raftdir.Dir // written late, if the time is over
	err := guarded(ctx, raftdir.Bytes(dir), func() (err error) {
		log, err = raftdir.Open(dir, stableKeys...)
		return err
	})
	if errors.Is(err, raftdir.ErrDamaged) {
		err = fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", dir, err)
	}
	return log, nil
}

// stableKeys are those that raft and this package keep beside the log.
var stableKeys = []string{termstore.TermKey, termstore.VoteTermKey, termstore.VoteCandidateKey, string(clusterIDKey), termstore.WriterKey}

// terms is where the storage keeps term and vote, under the guard.
func (s *Storage) terms(guard *diskGuard) *termstore.Store {
	return termstore.New(termstore.Config{Inner: s.stable, Write: guard.write, Fail: guard.fail, Damaged: ErrCorrupt})
}

func isNotFound(err error) bool { return termstore.NotFound(err) }

// snapshotFailure returns why a snapshot was refused, or nil.
func (s *Storage) snapshotFailure() error {
	if files, ok := s.snapshots.(*sealed.Snapshots); ok {
		return files.Failure()
	}
	return nil
}

// reportDamage has f told of snapshots that are found damaged from now on.
func (s *Storage) reportDamage(f func(error)) {
	if files, ok := s.snapshots.(*sealed.Snapshots); ok {
		files.Report(f)
	}
}

// Close closes the files.
func (s *Storage) Close() error {
	var first error
	for _, c := range s.closers {
		if err := c.Close(); err != nil && first == nil {
			first = fmt.Errorf("closing the log: %w", err)
		}
	}
	return first
}
