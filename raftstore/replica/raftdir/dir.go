package raftdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/setpoint-io/setpoint/internal/durable"
	"github.com/setpoint-io/setpoint/raftstore/replica/boltfile"
	"github.com/setpoint-io/setpoint/raftstore/replica/segments"
)

const (
	// lockWait is how long to wait for another process to let go of the directory.
	lockWait = time.Second
	fileMode = 0o600
)

// The names in the directory.
const (
	// Database holds term and vote, and in older directories the log.
	Database = "raft.db"
	// Segments is the folder of the log.
	Segments = "log"
)

// ErrDamaged: the files are not what was written. ErrInUse: another process has the directory open.
var (
	ErrDamaged = errors.New("log or vote is damaged")
	ErrInUse   = errors.New("another process holds the log")
)

// Dir is an open directory. Log and Stable may be called by many goroutines.
type Dir struct {
	Log    raft.LogStore
	Stable raft.StableStore
	// InDatabase: the log is that of an older release. It is deleted in slices, and may be moved some day.
	InDatabase bool

	path     string
	database *raftboltdb.BoltStore
	segments *segments.Log // nil while InDatabase
	// former is the database that a move replaced. It is held, so that nobody who waits for its lock takes it for the directory's.
	former *raftboltdb.BoltStore
}

// Open opens the directory, which exists. stableKeys are all that may be kept beside the log.
func Open(path string, stableKeys ...string) (*Dir, error) {
	database, err := openDatabase(filepath.Join(path, Database), stableKeys)
	if err != nil {
		return nil, err
	}
	d := &Dir{path: path, database: database}
	if err := d.open(stableKeys); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.Stable = d.database
	return d, nil
}

// open opens the log: segments, unless it is in the database and may not be moved yet.
func (d *Dir) open(stableKeys []string) (err error) {
	last, err := d.database.LastIndex()
	if err != nil {
		return err
	}
	moved := last == 0
	if !moved && exists(filepath.Join(d.path, mayMoveName)) {
		if moved, err = d.tryMove(stableKeys); err != nil {
			return fmt.Errorf("moving the log to segments: %w", err)
		}
	}
	if !moved {
		d.Log, d.InDatabase = d.database, true
		return nil
	}
	// A process that was killed may have changed names without waiting for the disk.
	if err := durable.SyncFolder(d.path); err != nil {
		return err
	}
	if d.segments, err = segments.Open(filepath.Join(d.path, Segments)); errors.Is(err, segments.ErrDamaged) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	d.Log = d.segments
	return err
}

// Bytes is the size of all files.
func (d *Dir) Bytes() (n int64) {
	if info, err := os.Stat(filepath.Join(d.path, Database)); err == nil {
		n = info.Size()
	}
	if d.InDatabase {
		return n
	}
	return n + d.segments.Bytes()
}

// Bytes is the size of all files below a directory, which need not be open.
func Bytes(path string) (n int64) {
	filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil
		}
		if info, err := entry.Info(); err == nil {
			n += info.Size()
		}
		return nil
	})
	return n
}

// RoomBytes is how much the log can grow inside its files.
func (d *Dir) RoomBytes() int64 {
	if d.InDatabase {
		return int64(d.database.Stats().FreePageN) * int64(os.Getpagesize())
	}
	return d.segments.RoomBytes()
}

// DropSpares gives the room of files that hold nothing back to the disk.
func (d *Dir) DropSpares() error {
	if d.InDatabase {
		return nil
	}
	return d.segments.DropSpares()
}

// Close closes the files.
func (d *Dir) Close() error {
	var errs []error
	if d.segments != nil {
		errs = append(errs, d.segments.Close())
	}
	errs = append(errs, d.database.Close())
	if d.former != nil {
		errs = append(errs, d.former.Close())
	}
	return errors.Join(errs...)
}

// openDatabase opens a database. Its commits reach the disk before they return;
// there is no setting by which they would not.
func openDatabase(path string, stableKeys []string) (*raftboltdb.BoltStore, error) {
	if err := boltfile.Check(path, stableKeys...); err != nil {
		return nil, openError(err)
	}
	database, err := raftboltdb.New(raftboltdb.Options{
		Path: path,
		// The array form of the free list is slow once a log was cut often. The list
		// is kept in the file: rebuilding it at open reads a damaged file on
		// goroutines of the database, where nothing catches a panic.
		BoltOptions: &bbolt.Options{Timeout: lockWait, FreelistType: bbolt.FreelistMapType},
	})
	return database, openError(err)
}

// openError tells damage from a file in use.
func openError(err error) error {
	switch {
	case errors.Is(err, bolterrors.ErrTimeout), errors.Is(err, boltfile.ErrInUse):
		return ErrInUse
	case errors.Is(err, boltfile.ErrDamaged), errors.Is(err, bolterrors.ErrInvalid),
		errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
