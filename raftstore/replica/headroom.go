package replica

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/internal/aligned"
	"github.com/setpoint-io/setpoint/raftstore/replica/diskreserve"
	"github.com/setpoint-io/setpoint/raftstore/replica/headroom"
	"github.com/setpoint-io/setpoint/raftstore/replica/logtail"
	"github.com/setpoint-io/setpoint/raftstore/replica/sealed"
)

const (
	// spaceEvery is how often the free space is looked at: one system call.
	spaceEvery = time.Second
	// While space is low the log is compacted lowCompactEvery if there are fewer objects than before: what
	// was deleted leaves the disk with the snapshots that held it. For other changes it is done
	// lowCompactRarely.
	lowCompactEvery  = 2 * time.Second
	lowCompactRarely = time.Minute
	// logBytesMax bounds the log between two snapshots of a large state, and so what a start reads.
	logBytesMax = 512 << 20
)

// Space is the room on the file system of a data directory.
type Space = diskreserve.Space

// SpaceStatus is the room that a replica has; zero before it looked.
type SpaceStatus = headroom.Status

// errFull is the answer to a leader whose entries do not fit.
var errFull = errors.New("disk is full")

// spaceWatch is what watchSpace keeps.
type spaceWatch struct {
	*headroom.Headroom
	// logBytesMax is the most that the log of a large state grows between two snapshots.
	logBytesMax int64
	// news gets a value after a look that the growth of the log brought on.
	news chan struct{}
	// compacted is when a compaction was last asked for.
	compacted time.Time
	// objects is how many the newest snapshot holds, or more.
	objects atomic.Int64
}

func newSpaceWatch() *spaceWatch {
	w := &spaceWatch{Headroom: headroom.New(), news: make(chan struct{}, 1)}
	w.objects.Store(math.MaxInt64)
	return w
}

// notify leaves a value in a channel that holds one.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// watchSpace looks until the context ends. When space becomes low it asks for a
// snapshot, so that the log has room inside its files for what still passes.
func (r *Replica) watchSpace(ctx context.Context) {
	told, grown := "", false
	for {
		if err := r.lookAtSpace(); err != nil && err.Error() != told {
			told = err.Error()
			r.cfg.Logger.Warn("keeping space free", "err", err)
		}
		if grown {
			notify(r.space.news)
		}
		grown = false
		select {
		case <-r.space.Grown():
			grown = true
		case <-aligned.After(spaceEvery):
		case <-ctx.Done():
			return
		}
	}
}

// lookAtSpace looks once and tells what has changed.
func (r *Replica) lookAtSpace() error {
	was := r.space.Status().Low
	err := r.space.Look()
	now := r.space.Status()
	switch {
	case now.Low && !was:
		r.cfg.Logger.Warn("disk is nearly full", "freeBytes", now.FreeBytes, "neededBytes", now.HeadroomBytes)
	case was && !now.Low:
		r.cfg.Logger.Info("disk has room again", "freeBytes", now.FreeBytes)
	}
	if now.Low {
		// A compaction trims the log into spares.
		err = errors.Join(err, r.cfg.Storage.dropSpares())
		r.compactLow()
	}
	return err
}

// refuses is asked before raft gets entries of a leader. Raft itself cannot: after an append that failed it
// takes the log for longer than it is. The leader asks again, at most ten seconds later, and goes on with the
// others. Entries of a term that began twice stop this replica.
func (r *Replica) refuses(entries []*raft.Log) error {
	if err := r.log.beganAgain(entries); err != nil {
		r.fail(err)
		return err
	}
	var bytes int64
	for _, l := range entries {
		bytes += logtail.EntryBytes(l)
	}
	was := r.space.Status().Full
	if r.space.Fits(bytes) {
		return nil
	}
	if !was {
		r.cfg.Logger.Error("disk is full: this server takes no more entries and falls behind until there is room")
	}
	return errFull
}

// compactLow asks for a compaction if it is likely to make room.
func (r *Replica) compactLow() {
	root, pause := r.state.Root(), lowCompactRarely
	if int64(root.Len()) < r.space.objects.Load() {
		pause = lowCompactEvery
	}
	if root.Index <= snapshotIndex(r.raft) || time.Since(r.space.compacted) < pause {
		return
	}
	r.space.compacted = time.Now()
	r.log.askCompaction()
}

// openSpace looks once before the log is opened to writes.
func (r *Replica) openSpace() error {
	storage := r.cfg.Storage
	space, err := storage.space()
	if err != nil {
		return fmt.Errorf("measuring free space: %w", err)
	}
	r.cfg.Timing.SnapshotBytes = headroom.LogLimit(r.cfg.Timing.SnapshotBytes, space)
	r.space.logBytesMax = headroom.LogLimit(logBytesMax, space)
	// watchSpace looks again, and tells what went wrong.
	_ = r.space.Open(headroom.Disk{
		Measure: storage.space, Reserve: storage.reserve, SnapshotBytes: storage.snapshotBytes, LogFreeBytes: storage.freeBytes,
	})
	return nil
}

// snapshotBytes is the size of the newest snapshot, 0 if none is known.
func (s *Storage) snapshotBytes() int64 {
	if files, ok := s.snapshots.(*sealed.Snapshots); ok {
		return files.NewestBytes()
	}
	return 0
}

// keepNewestSnapshot gives back the space of all others.
func (s *Storage) keepNewestSnapshot() error {
	if files, ok := s.snapshots.(*sealed.Snapshots); ok {
		return files.KeepNewest()
	}
	return nil
}

// SpaceNews gets a value when the log has grown much since the last look at the
// free space.
func (r *Replica) SpaceNews() <-chan struct{} { return r.space.news }

// Space returns the room this replica has.
func (r *Replica) Space() SpaceStatus {
	if !r.started() {
		return SpaceStatus{}
	}
	return r.space.Status()
}
