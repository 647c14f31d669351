package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/setpoint-io/setpoint/raftstore/replica/boltfile"
	"github.com/setpoint-io/setpoint/raftstore/replica/diskreserve"
	"github.com/setpoint-io/setpoint/raftstore/replica/marks"
	"github.com/setpoint-io/setpoint/raftstore/replica/sealed"
	"github.com/setpoint-io/setpoint/raftstore/replica/termstore"
)

const (
	// lockWait is how long to wait for another process to let go of the log.
	lockWait = time.Second
	// dirMode and fileMode keep the cluster's secrets to this user.
	dirMode, fileMode = 0o700, 0o600
)

var errInUse = errors.New("another process holds the log")

// Storage is where a replica keeps its log, its term and vote, its snapshots, and
// apart from them the marker that says they exist and how far they reached. OpenFiles and Memory.Open make one; a Replica
// closes it.
type Storage struct {
	logs      raft.LogStore
	stable    raft.StableStore
	snapshots raft.SnapshotStore
	marks     marks.Store
	sizeBytes func() int64
	// freeBytes is the room inside the log's file.
	freeBytes func() int64
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
	for _, sub := range []string{"raft", "snapshots", "state-marker"} {
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
	path := filepath.Join(dir, "raft", "raft.db")
	var bolt *raftboltdb.BoltStore
	err = guarded(ctx, fileSize(path), func() (err error) {
		bolt, err = openBolt(path)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	snapshots, err := sealed.Open(dir, logger, ErrCorrupt)
	if err != nil {
		bolt.Close()
		return nil, fmt.Errorf("opening snapshots: %w", err)
	}
	return &Storage{
		logs: bolt, stable: bolt, snapshots: snapshots,
		marks:       marks.Dir(filepath.Join(dir, marksDir)),
		sizeBytes:   func() int64 { return fileSize(path) },
		freeBytes:   func() int64 { return int64(bolt.Stats().FreePageN) * int64(os.Getpagesize()) },
		space:       func() (Space, error) { return diskreserve.FreeSpace(dir) },
		reserve:     held,
		snapshotDir: filepath.Join(dir, sealed.Dir),
		closers:     []io.Closer{bolt},
	}, nil
}

// stableKeys are those that raft and this package keep beside the log.
var stableKeys = []string{termstore.TermKey, termstore.VoteTermKey, termstore.VoteCandidateKey, string(clusterIDKey), termstore.WriterKey}

// openBolt opens the database. Its commits reach the disk before they return;
// there is no setting by which they would not.
func openBolt(path string) (*raftboltdb.BoltStore, error) {
	if err := boltfile.Check(path, stableKeys...); err != nil {
		return nil, openError(err)
	}
	bolt, err := raftboltdb.New(raftboltdb.Options{
		Path: path,
		// The array form of the free list is slow once a log was cut often. The list
		// is kept in the file: rebuilding it at open reads a damaged file on
		// goroutines of the database, where nothing catches a panic.
		BoltOptions: &bbolt.Options{Timeout: lockWait, FreelistType: bbolt.FreelistMapType},
	})
	return bolt, openError(err)
}

// openError tells damage from a file in use.
func openError(err error) error {
	switch {
	case errors.Is(err, bolterrors.ErrTimeout), errors.Is(err, boltfile.ErrInUse):
		return errInUse
	case errors.Is(err, boltfile.ErrDamaged), errors.Is(err, bolterrors.ErrInvalid),
		errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}

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

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
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
