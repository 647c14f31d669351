package replica

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	// spaceEvery is how often the free space is looked at: one system call.
	spaceEvery = time.Second
	// headroomPart of the file system is kept free, but not more than headroomMax;
	// at least enough for the next snapshot and logGrowthBytes, but not more than
	// headroomPartMax of a small file system.
	headroomPart    = 20
	headroomMax     = 1 << 30
	logGrowthBytes  = 16 << 20
	headroomPartMax = 4
	// healPart of the headroom more than it must be free before writes are taken
	// again, or they would be taken and refused by turns.
	healPart = 4
	// logPart of the file system is the most that the log grows between snapshots.
	logPart = 16
)

// Space is the room on the file system of a data directory, in bytes. The zero
// value has no bounds.
type Space struct {
	FreeBytes, TotalBytes int64
}

// SpaceStatus is the room that a replica has. The zero value says that it has not
// looked, or that there are no bounds.
type SpaceStatus struct {
	// FreeBytes are left beside the reserve, HeadroomBytes must be.
	FreeBytes, HeadroomBytes int64
	// Low says that there were fewer than that, and that there are not yet a
	// quarter more.
	Low bool
}

// headroom watches the free space. Whoever writes more than must be is refused
// while it is low; what makes room again, and the system itself, go on.
type headroom struct {
	measure func() (Space, error)
	// reserve is space held back, nil without files.
	reserve *reserve
	// snapshotBytes is the size of the newest snapshot.
	snapshotBytes func() int64

	status atomic.Pointer[SpaceStatus]
}

// look measures once.
func (h *headroom) look() error {
	space, err := h.measure()
	if err != nil {
		return fmt.Errorf("measuring free space: %w", err)
	}
	s := SpaceStatus{
		FreeBytes:     space.FreeBytes - h.reserve.missing(),
		HeadroomBytes: headroomBytes(space.TotalBytes, h.snapshotBytes()),
	}
	s.Low = s.FreeBytes < s.HeadroomBytes
	if h.Status().Low {
		s.Low = s.FreeBytes < s.HeadroomBytes+s.HeadroomBytes/healPart
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
	case s.Low && space.FreeBytes < h.reserve.bytes:
		return h.reserve.drop()
	case !s.Low:
		return h.reserve.make()
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

func headroomBytes(total, snapshot int64) int64 {
	needed := max(min(total/headroomPart, headroomMax), snapshot+snapshot/4+logGrowthBytes)
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
	told := ""
	for {
		if err := r.lookAtSpace(); err != nil && err.Error() != told {
			told = err.Error()
			r.cfg.Logger.Warn("keeping space free", "err", err)
		}
		select {
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
		r.log.askCompaction()
	case was && !now.Low:
		r.cfg.Logger.Info("disk has room again", "freeBytes", now.FreeBytes)
	}
	return err
}

// openSpace looks once before the log is opened to writes.
func (r *Replica) openSpace() error {
	storage := r.cfg.Storage
	space, err := storage.space()
	if err != nil {
		return fmt.Errorf("measuring free space: %w", err)
	}
	r.cfg.Timing.SnapshotBytes = logLimit(r.cfg.Timing.SnapshotBytes, space)
	r.space = &headroom{measure: storage.space, reserve: storage.reserve, snapshotBytes: storage.snapshotBytes}
	return nil
}

// snapshotBytes is the size of the newest snapshot, 0 if none is known.
func (s *Storage) snapshotBytes() int64 {
	if sealed, ok := s.snapshots.(*sealedSnapshots); ok {
		return sealed.newestBytes.Load()
	}
	return 0
}

// Space returns the room this replica has.
func (r *Replica) Space() SpaceStatus {
	if !r.started() {
		return SpaceStatus{}
	}
	return r.space.Status()
}
