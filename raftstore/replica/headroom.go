package replica

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/replica/reserve"
)

const (
	// spaceEvery is how often the free space is looked at: one system call.
	spaceEvery = time.Second
	// spaceEveryBytes of log are written at most between two looks.
	spaceEveryBytes = 4 << 20
	// While space is low the log is compacted lowCompactEvery if there are fewer
	// objects than before: what was deleted leaves the disk with the snapshots that
	// held it. For other changes it is done lowCompactRarely.
	lowCompactEvery  = 2 * time.Second
	lowCompactRarely = time.Minute
	// headroomPart of the file system is kept free, but not more than headroomMax;
	// at least enough for the next snapshot and for the log to grow by
	// logGrowthBytes, but not more than headroomPartMax of a small file system.
	headroomPart    = 20
	headroomMax     = 1 << 30
	logGrowthBytes  = 16 << 20
	headroomPartMax = 2
	// healPart of the headroom more than it must be free before writes are taken
	// again, or they would be taken and refused by turns.
	healPart = 4
	// logPart of the file system is the most that the log grows between snapshots.
	logPart = 16
)

// Space is the room on the file system of a data directory.
type Space = reserve.Space

// SpaceStatus is the room that a replica has. The zero value says that it has not
// looked, or that there are no bounds.
type SpaceStatus struct {
	// FreeBytes are left beside the reserve, HeadroomBytes must be: a quarter more
	// while space is low than before.
	FreeBytes, HeadroomBytes int64
	// Low says that there are fewer than that.
	Low bool
}

// headroom watches the free space. Whoever writes more than must be is refused
// while it is low; what makes room again, and the system itself, go on.
type headroom struct {
	measure func() (Space, error)
	// reserve is space held back, nil without files.
	reserve *reserve.Reserve
	// snapshotBytes is the size of the newest snapshot.
	snapshotBytes func() int64
	// logFreeBytes is the room inside the log's file, which never shrinks.
	logFreeBytes func() int64

	status atomic.Pointer[SpaceStatus]
	// written counts the bytes of log since the last look that they brought on;
	// wake brings it on.
	written atomic.Int64
	wake    chan struct{}
	// news gets a value after such a look.
	news chan struct{}
	// compacted is when a compaction was last asked for.
	compacted time.Time
	// objects is how many the newest snapshot holds, or more.
	objects atomic.Int64
}

func newHeadroom() *headroom {
	h := &headroom{wake: make(chan struct{}, 1), news: make(chan struct{}, 1)}
	h.objects.Store(math.MaxInt64)
	return h
}

// wrote counts bytes that the log has grown.
func (h *headroom) wrote(n int64) {
	if h.written.Add(n) >= spaceEveryBytes {
		h.written.Store(0)
		notify(h.wake)
	}
}

// relieve gives the reserve back for a write that found the disk full.
func (h *headroom) relieve() bool {
	if h.reserve == nil || !h.reserve.Spend() {
		return false
	}
	notify(h.wake)
	return true
}

// notify leaves a value in a channel that holds one.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// look measures once.
func (h *headroom) look() error {
	space, err := h.measure()
	if err != nil {
		return fmt.Errorf("measuring free space: %w", err)
	}
	s := SpaceStatus{
		FreeBytes:     max(0, space.FreeBytes-h.reserve.Missing()),
		HeadroomBytes: headroomBytes(space.TotalBytes, h.snapshotBytes(), h.logFreeBytes()),
	}
	s.Low = s.FreeBytes < s.HeadroomBytes
	if h.Status().Low {
		s.HeadroomBytes += s.HeadroomBytes / healPart
		s.Low = s.FreeBytes < s.HeadroomBytes
	}
	h.status.Store(&s)
	return h.adjust(space, s)
}

// adjust drops the reserve when nothing else is left, and makes it again when there
// is room. It counts as used either way, so neither changes the status.
func (h *headroom) adjust(space Space, s SpaceStatus) error {
	switch {
	case h.reserve == nil:
		return nil
	case s.Low && space.FreeBytes < h.reserve.Size():
		return h.reserve.Drop()
	case !s.Low:
		return h.reserve.Make()
	}
	return nil
}

// Status returns what the last look found.
func (h *headroom) Status() SpaceStatus {
	if s := h.status.Load(); s != nil {
		return *s
	}
	return SpaceStatus{}
}

func headroomBytes(total, snapshot, logFree int64) int64 {
	growth := max(0, logGrowthBytes-logFree)
	needed := max(min(total/headroomPart, headroomMax), snapshot+snapshot/4+growth)
	return min(needed, total/headroomPartMax)
}

// logLimit is how far the log may grow between snapshots: limit, or less on a small
// file system.
func logLimit(limit int64, space Space) int64 {
	if space.TotalBytes == 0 {
		return limit
	}
	return min(limit, max(space.TotalBytes/logPart, 1<<20))
}

// watchSpace looks until the context ends. When space becomes low it asks for a
// snapshot, so that the log's file has room inside for what still passes.
func (r *Replica) watchSpace(ctx context.Context) {
	tick := time.NewTicker(spaceEvery)
	defer tick.Stop()
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
		case <-r.space.wake:
			grown = true
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// lookAtSpace looks once and tells what has changed.
func (r *Replica) lookAtSpace() error {
	was := r.space.Status().Low
	err := r.space.look()
	now := r.space.Status()
	switch {
	case now.Low && !was:
		r.cfg.Logger.Warn("disk is nearly full: user writes are refused", "freeBytes", now.FreeBytes, "neededBytes", now.HeadroomBytes)
	case was && !now.Low:
		r.cfg.Logger.Info("disk has room again", "freeBytes", now.FreeBytes)
	}
	if now.Low {
		r.compactLow()
	}
	return err
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
	r.cfg.Timing.SnapshotBytes = logLimit(r.cfg.Timing.SnapshotBytes, space)
	r.space.measure, r.space.reserve = storage.space, storage.reserve
	r.space.snapshotBytes, r.space.logFreeBytes = storage.snapshotBytes, storage.freeBytes
	return nil
}

// snapshotBytes is the size of the newest snapshot, 0 if none is known.
func (s *Storage) snapshotBytes() int64 {
	if sealed, ok := s.snapshots.(*sealedSnapshots); ok {
		return sealed.newestBytes.Load()
	}
	return 0
}

// keepNewestSnapshot gives back the space of all others.
func (s *Storage) keepNewestSnapshot() error {
	if sealed, ok := s.snapshots.(*sealedSnapshots); ok {
		return sealed.keepNewest()
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
