package replica

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// trailingEntriesMin and Max bound how many entries stay in the log behind a
// snapshot, for followers that are a little behind. Between them it is as many as
// take Timing.SnapshotBytes.
const (
	trailingEntriesMin = 128
	trailingEntriesMax = 65536
)

// snapshotRetry is the pause after a snapshot that failed.
const snapshotRetry = 5 * time.Second

// compact takes a snapshot whenever the log has grown by the limit drawn last.
func (r *Replica) compact(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.log.full:
		}
		if err := r.Snapshot(ctx); err != nil && ctx.Err() == nil {
			// The log goes on growing and asks again with its next entry.
			r.cfg.Logger.Warn("snapshot failed", "err", err)
			select {
			case <-time.After(snapshotRetry):
			case <-ctx.Done():
			}
		}
	}
}

// Snapshot writes the state to disk and deletes the log behind it.
func (r *Replica) Snapshot(ctx context.Context) error {
	if r.Space().Low {
		if err := errors.Join(r.cfg.Storage.dropSpares(), r.cfg.Storage.keepNewestSnapshot()); err != nil {
			return err
		}
	}
	r.log.drawLimit()
	objects := r.state.Root().Len()
	grown, count := r.log.grown.Load(), r.log.count.Load()
	conf := r.raft.ReloadableConfig()
	conf.TrailingLogs = trailingEntries(grown, count, r.cfg.Timing.SnapshotBytes)
	if err := r.raft.ReloadConfig(conf); err != nil {
		return err
	}
	err := r.await(ctx, func() raft.Future { return r.raft.Snapshot() })
	if err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return err
	}
	r.log.grown.Add(-grown)
	r.log.count.Add(-count)
	r.space.objects.Store(int64(objects))
	return nil
}

// trailingEntries is how many entries of the recent average size fit into limit.
func trailingEntries(grown, count, limit int64) uint64 {
	if grown <= 0 || count <= 0 {
		return trailingEntriesMin
	}
	return uint64(min(max(limit*count/grown, trailingEntriesMin), trailingEntriesMax))
}
