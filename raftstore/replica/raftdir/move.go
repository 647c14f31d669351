package raftdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/setpoint-io/setpoint/internal/durable"
	"github.com/setpoint-io/setpoint/raftstore/replica/segments"
	"github.com/setpoint-io/setpoint/raftstore/replica/termstore"
)

// The names in the directory before and during a move.
const (
	// mayMoveName is an empty file that says that the log may be moved.
	mayMoveName = "log-may-move"
	// movingName is the log while it is being moved.
	movingName = "log-moving"
	// newDatabaseName is the database while it is written anew without a log.
	newDatabaseName = "raft-new.db"
)

// moveBatchBytes is how much of a log is moved at once.
const moveBatchBytes = 1 << 20

// LetMove allows that the log is moved by the next Open. There is nothing to do for one that is in segments.
func (d *Dir) LetMove() error {
	path := filepath.Join(d.path, mayMoveName)
	if !d.InDatabase || exists(path) {
		return nil
	}
	return os.WriteFile(path, nil, fileMode)
}

// tryMove moves the log, unless the disk has no room for another copy of it: then it stays where it is until the next Open.
func (d *Dir) tryMove(stableKeys []string) (moved bool, err error) {
	err = d.move(stableKeys)
	if errors.Is(err, syscall.ENOSPC) {
		return false, errors.Join(os.RemoveAll(filepath.Join(d.path, movingName)), os.RemoveAll(filepath.Join(d.path, newDatabaseName)))
	}
	return err == nil, err
}

// move moves the log from the database to segments. While the database has entries they are the log, so after a crash
// it begins again; the database loses them at once, by being replaced.
func (d *Dir) move(stableKeys []string) error {
	moving, final := filepath.Join(d.path, movingName), filepath.Join(d.path, Segments)
	if err := errors.Join(os.RemoveAll(moving), os.RemoveAll(final)); err != nil {
		return err
	}
	if err := copyLog(d.database, moving); err != nil {
		return err
	}
	if err := os.Rename(moving, final); err != nil {
		return err
	}
	if err := durable.SyncFolder(d.path); err != nil {
		return err
	}
	return d.dropLog(stableKeys)
}

// copyLog writes the entries as they are, checksums included.
func copyLog(from raft.LogStore, path string) error {
	first, err := from.FirstIndex()
	if err != nil {
		return err
	}
	last, err := from.LastIndex()
	if err != nil {
		return err
	}
	to, err := segments.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(copyEntries(from, to, first, last), to.Close())
}

func copyEntries(from, to raft.LogStore, first, last uint64) error {
	var batch []*raft.Log
	var bytes int
	for index := first; index <= last; index++ {
		entry := new(raft.Log)
		if err := from.GetLog(index, entry); err != nil {
			return fmt.Errorf("%w: entry %d: %w", ErrDamaged, index, err)
		}
		batch, bytes = append(batch, entry), bytes+len(entry.Data)
		if bytes < moveBatchBytes && index < last {
			continue
		}
		if err := to.StoreLogs(batch); err != nil {
			return err
		}
		batch, bytes = nil, 0
	}
	return nil
}

// dropLog replaces the database by one that has only what is kept beside the log. Deleting the entries would
// leave their room to a free list that each later write repeats. The new one is locked before the old one lets go.
func (d *Dir) dropLog(stableKeys []string) error {
	fresh := filepath.Join(d.path, newDatabaseName)
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	to, err := openDatabase(fresh, stableKeys)
	if err != nil {
		return err
	}
	err = copyStable(d.database, to, stableKeys)
	if err == nil {
		err = os.Rename(fresh, filepath.Join(d.path, Database))
	}
	if err != nil {
		return errors.Join(err, to.Close())
	}
	d.former, d.database = d.database, to
	return errors.Join(durable.SyncFolder(d.path), os.Remove(filepath.Join(d.path, mayMoveName)))
}

func copyStable(from, to *raftboltdb.BoltStore, stableKeys []string) error {
	for _, key := range stableKeys {
		value, err := from.Get([]byte(key))
		if termstore.NotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if err := to.Set([]byte(key), value); err != nil {
			return err
		}
	}
	return nil
}
