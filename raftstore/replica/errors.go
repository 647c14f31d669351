package replica

import (
	"errors"

	"github.com/setpoint-io/setpoint/raftstore/replica/marks"
)

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
	// ErrDiskWentBack: another member knows of committed entries that this replica had on its
	// disk and has no longer. It must come back under a new server id as well.
	ErrDiskWentBack = errors.New("this server's disk was put back to an earlier state")
	// ErrForeignData: the data directory belongs to another cluster or server.
	ErrForeignData = errors.New("data directory of another cluster")
	// ErrCorrupt: stored bytes are not what was written.
	ErrCorrupt = marks.ErrCorrupt
	// ErrDiskStalled: a write did not reach the disk within Timing.DiskStall.
	ErrDiskStalled = errors.New("disk stalled")
	// ErrDiskFailed: a write was refused by the disk.
	ErrDiskFailed = errors.New("disk write failed")
	// ErrDiverged: this replica's state differs from that of most voters, or an entry that it does not know to be
	// committed differs from the leader's under the same index and term.
	ErrDiverged = errors.New("replica state diverged")
	// ErrUndecided: this replica's state differs from the leader's, and there is no
	// majority of voters that agree. The data stays as it is.
	ErrUndecided = errors.New("replica state differs from the leader's, and no majority says which is right")
	// ErrCommittedLost: the leader lacks entries that this replica knows to be committed, for example because
	// another server was put back to an earlier state. This replica keeps the entries, perhaps as the only one,
	// and an administrator has to decide what to do.
	ErrCommittedLost = errors.New("the cluster has lost committed entries that are still here")
	// ErrOtherLife: a server with the data of another life of this cluster.
	ErrOtherLife = errors.New("a server of another life of this cluster")
	// ErrLifeEnded: the cluster went on without this server, by a recovery from another.
	ErrLifeEnded = errors.New("the life that the data belongs to has ended")
	// ErrStopped: the replica was closed or stopped itself.
	ErrStopped = errors.New("replica stopped")
	// ErrOpenTimeout: the data could not be opened in the time that their size allows.
	ErrOpenTimeout = errors.New("opening the data directory took too long")
	// ErrFeatureLevel: the log or a snapshot needs a newer release than this one.
	ErrFeatureLevel = errors.New("the state needs a newer release")
)
