package headroom

import (
	"fmt"
	"sync/atomic"

	"github.com/setpoint-io/setpoint/raftstore/replica/diskreserve"
)

const (
	// spaceEveryBytes of log are written at most between two looks.
	spaceEveryBytes = 4 << 20
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
	// appendLeftBytes, or appendLeftPart of a smaller file system, stay free of entries
	// that a leader sends: a follower refuses them, for an entry that it took and
	// cannot write stops it. Terms and votes still fit.
	appendLeftBytes = 4 << 20
	appendLeftPart  = 64
	// logPart of the file system is the most that the log grows between snapshots.
	logPart = 16
)

// Status is the free space of a replica's disk. The zero value says that it was not measured, or is not
// limited.
type Status struct {
	// FreeBytes are left beside the reserve, HeadroomBytes must be: a quarter more
	// while space is low than before.
	FreeBytes, HeadroomBytes int64
	// Low says that there are fewer than that.
	Low bool
	// Full says that there is so little that this replica takes no entries from its
	// leader: it falls behind, and catches up when there is room again.
	Full bool
}

// Disk is what there is to look at.
type Disk struct {
	Measure func() (diskreserve.Space, error)
	// Reserve is space held back, nil without files.
	Reserve *diskreserve.Reserve
	// SnapshotBytes is the size of the newest snapshot.
	SnapshotBytes func() int64
	// LogFreeBytes is the room inside the log's files, which it takes before other room.
	LogFreeBytes func() int64
}

// Headroom knows how much room there is: its status says when it is low, and when next to
// nothing is left what a leader sends does not fit.
type Headroom struct {
	disk   Disk
	status atomic.Pointer[Status]
	// full: the last entries that a leader sent did not fit, and space is still low.
	full atomic.Bool
	// written counts the bytes of log since the last look that they brought on;
	// wake brings it on.
	written atomic.Int64
	wake    chan struct{}
}

// New returns a headroom that has not looked. Before its first use it is told of the disk.
func New() *Headroom { return &Headroom{wake: make(chan struct{}, 1)} }

// Open tells of the disk and looks once.
func (h *Headroom) Open(disk Disk) error {
	h.disk = disk
	return h.Look()
}

// Grown gets a value when the log has grown so much that somebody should look, or when
// the reserve is spent.
func (h *Headroom) Grown() <-chan struct{} { return h.wake }

// Wrote counts bytes that the log has grown.
func (h *Headroom) Wrote(n int64) {
	if h.written.Add(n) >= spaceEveryBytes {
		h.written.Store(0)
		h.notify()
	}
}

// Relieve gives the reserve back for a write that found the disk full.
func (h *Headroom) Relieve() bool {
	if h.disk.Reserve == nil || !h.disk.Reserve.Spend() {
		return false
	}
	h.notify()
	return true
}

func (h *Headroom) notify() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Look measures once.
func (h *Headroom) Look() error {
	space, err := h.disk.Measure()
	if err != nil {
		return fmt.Errorf("measuring free space: %w", err)
	}
	s := Status{
		FreeBytes:     max(0, space.FreeBytes-h.disk.Reserve.Missing()),
		HeadroomBytes: headroomBytes(space.TotalBytes, h.disk.SnapshotBytes(), h.disk.LogFreeBytes()),
	}
	s.Low = s.FreeBytes < s.HeadroomBytes
	if h.Status().Low {
		s.HeadroomBytes += s.HeadroomBytes / healPart
		s.Low = s.FreeBytes < s.HeadroomBytes
	}
	if !s.Low {
		h.full.Store(false)
	}
	h.status.Store(&s)
	return h.adjust(space, s)
}

// adjust drops the reserve when nothing else is left, and makes it again when there
// is room. It counts as used either way, so neither changes the status.
func (h *Headroom) adjust(space diskreserve.Space, s Status) error {
	switch {
	case h.disk.Reserve == nil:
		return nil
	case s.Low && space.FreeBytes < h.disk.Reserve.Size():
		return h.disk.Reserve.Drop()
	case !s.Low:
		return h.disk.Reserve.Make()
	}
	return nil
}

// Fits reports whether entries of so many bytes may be taken from a leader. While space
// is low, or the reserve is spent, it measures each time: somebody else may be filling the disk.
func (h *Headroom) Fits(bytes int64) bool {
	if !h.Status().Low && h.disk.Reserve.Missing() == 0 {
		return true
	}
	space, err := h.disk.Measure()
	left := space.FreeBytes + h.disk.Reserve.Held() - bytes
	fits := err != nil || left >= min(appendLeftBytes, space.TotalBytes/appendLeftPart)
	h.full.Store(!fits)
	return fits
}

// Status returns what the last look found.
func (h *Headroom) Status() (s Status) {
	if found := h.status.Load(); found != nil {
		s = *found
	}
	s.Full = h.full.Load()
	return s
}

func headroomBytes(total, snapshot, logFree int64) int64 {
	growth := max(0, logGrowthBytes-logFree)
	needed := max(min(total/headroomPart, headroomMax), snapshot+snapshot/4+growth)
	return min(needed, total/headroomPartMax)
}

// LogLimit is how far the log may grow between snapshots: limit, or less on a small
// file system.
func LogLimit(limit int64, space diskreserve.Space) int64 {
	if space.TotalBytes == 0 {
		return limit
	}
	return min(limit, max(space.TotalBytes/logPart, 1<<20))
}
