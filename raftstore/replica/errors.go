package replica

import "errors"

var (
	// ErrNotLeader: this replica does not lead, or stopped leading while asked.
	ErrNotLeader = errors.New("not the leader")
	// ErrNotProposed: the entry was not written to any log. It is safe to send
	// its commands again under any sequence.
	ErrNotProposed = errors.New("entry not proposed")
	// ErrStateLost: the marker says that this replica held state, but its log is
	// empty. Started anyway it could vote twice in one term, so it must come back
	// under a new server id.
	ErrStateLost = errors.New("replica state was lost; rejoin under a new server id")
	// ErrForeignData: the data directory belongs to another cluster or server.
	ErrForeignData = errors.New("data directory of another cluster")
	// ErrCorrupt: stored bytes are not what was written.
	ErrCorrupt = errors.New("stored data is corrupt")
	// ErrDiskStalled: a write did not reach the disk within Timing.DiskStall.
	ErrDiskStalled = errors.New("disk stalled")
	// ErrDiskFailed: a write was refused by the disk.
	ErrDiskFailed = errors.New("disk write failed")
	// ErrDiverged: this replica's state differs from what the leader recorded.
	ErrDiverged = errors.New("replica state diverged")
	// ErrStopped: the replica was closed or stopped itself.
	ErrStopped = errors.New("replica stopped")
	// ErrOpenTimeout: the data could not be opened within openLimit.
	ErrOpenTimeout = errors.New("opening the data directory took too long")
	// ErrFeatureLevel: the log or a snapshot needs a newer release than this one.
	ErrFeatureLevel = errors.New("the state needs a newer release")
)
