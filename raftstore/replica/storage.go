package replica

import (
	"context"
	"encoding/binary"
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
)

const (
	// snapshotsKept is one to use and one in case it is damaged.
	snapshotsKept = 2
	// lockWait is how long to wait for another process to let go of the log.
	lockWait = time.Second
	// dirMode and fileMode keep the cluster's secrets to this user.
	dirMode, fileMode = 0o700, 0o600
)

// Storage is where a replica keeps its log, its term and vote, its snapshots, and
// the marker that says they exist. OpenFiles and Memory.Open make one; a Replica
// closes it.
type Storage struct {
	logs      raft.LogStore
	stable    raft.StableStore
	snapshots raft.SnapshotStore
	marker    markerStore
	sizeBytes func() int64
	// snapshotDir is where snapshots are files, "" if they are not.
	snapshotDir string
	closers     []io.Closer
}

// OpenFiles opens the files below dir: raft/, snapshots/ and state-marker/, which
// are created if missing. A damaged file gives an error that wraps ErrCorrupt.
func OpenFiles(ctx context.Context, dir string, logger *slog.Logger) (*Storage, error) {
	for _, sub := range []string{"raft", "snapshots", "state-marker"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), dirMode); err != nil {
			return nil, fmt.Errorf("data directory: %w", err)
		}
	}
	path := filepath.Join(dir, "raft", "raft.db")
	var bolt *raftboltdb.BoltStore
	err := guarded(ctx, func() (err error) {
		bolt, err = openBolt(path)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	// The library appends a directory of the same name.
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(dir, snapshotsKept, bridgeLogger(logger))
	if err != nil {
		bolt.Close()
		return nil, fmt.Errorf("opening snapshots: %w", err)
	}
	return &Storage{
		logs: bolt, stable: bolt, snapshots: snapshots,
		marker:      &markerFile{path: filepath.Join(dir, "state-marker", "marker.json")},
		sizeBytes:   func() int64 { return fileSize(path) },
		snapshotDir: filepath.Join(dir, "snapshots"),
		closers:     []io.Closer{bolt},
	}, nil
}

// openBolt opens the database. Its commits reach the disk before they return;
// there is no setting by which they would not.
func openBolt(path string) (*raftboltdb.BoltStore, error) {
	if err := checkKeys(path); err != nil {
		return nil, err
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
	case errors.Is(err, bolterrors.ErrTimeout):
		return errors.New("another process holds the log")
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}

// checkKeys verifies that the log's keys follow each other. The library looks only
// at the first and the last, so a changed last key would make the log look short,
// and this replica forget what it acknowledged.
func checkKeys(path string) error {
	if fileSize(path) == 0 {
		return nil
	}
	db, err := bbolt.Open(path, fileMode, &bbolt.Options{ReadOnly: true, Timeout: lockWait})
	if err != nil {
		return openError(err)
	}
	defer db.Close()
	return db.View(func(tx *bbolt.Tx) error {
		logs := tx.Bucket([]byte("logs"))
		if logs == nil {
			return nil
		}
		previous := uint64(0)
		return logs.ForEach(func(key, _ []byte) error {
			if len(key) != 8 {
				return fmt.Errorf("%w: log key of %d bytes", ErrCorrupt, len(key))
			}
			index := binary.BigEndian.Uint64(key)
			if previous != 0 && index != previous+1 {
				return fmt.Errorf("%w: log entry %d follows %d", ErrCorrupt, index, previous)
			}
			previous = index
			return nil
		})
	})
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
