package replica

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/state"
)

// Server is one member of the cluster and where it is reached.
type Server struct {
	// ID is a member id (see MemberName), or a name in the list of founders.
	ID string
	// Address is host:port. The host is looked up at every dial, so a server may
	// move as long as its name follows.
	Address string
}

// Config is what a replica needs to run.
type Config struct {
	// ID is this server's name, and the member id of a founder; see MemberName.
	ID string
	// AdvertiseAddress is where the others reach this server, host:port.
	AdvertiseAddress string
	// ClusterID, if set, must match the one in the data directory.
	ClusterID string
	// InitialServers forms a new cluster when there is no state yet; all founders
	// are given the same list. A server not in it waits to be added. Its addresses
	// are tried before those of the replicated configuration.
	InitialServers []Server
	// Founds, if not nil, is called before raft runs on a server that founds a cluster, with the nonces that were
	// counted; its error ends the founding. With founded.ErrBefore a server that has peers is Fresh again. Of an
	// interrupted founding it is called again.
	Founds func(founders map[string]string) error
	// Disk is where the storage is opened; damaged data is set aside there.
	Disk Disk
	// Storage, if set, is used instead: opened by the caller, closed by Close. With
	// it alone, damaged data is an error.
	Storage *Storage
	// Dial opens an authenticated connection to the named server.
	Dial func(ctx context.Context, address, name string) (net.Conn, error)
	// Fatal is called once, from any goroutine, when the replica must not go on.
	// A process is expected to exit in it.
	Fatal  func(error)
	Timing Timing
	// FeatureLevel is the highest that this replica can apply; a log or a snapshot
	// above it stops the replica. 0 is no limit.
	FeatureLevel uint64
	// RingBytes bounds the watch history; 0 takes the default of state.
	RingBytes int64
	// Compared, if not nil, is told of comparisons of the replicas' states, as they are
	// applied. It must not wait.
	Compared func(state.Comparison)
	// Applying, if not nil, is called before each entry is applied, for tests.
	Applying func(index uint64)
	Logger   *slog.Logger
}

// Timing tunes elections and replication; zero fields take the defaults.
type Timing struct {
	// HeartbeatTimeout is how long a follower waits without hearing of a leader
	// before it stands for election: half a write gap after a crash. Default 500 ms.
	HeartbeatTimeout time.Duration
	// ElectionTimeout is how long a candidate waits for votes. Default 500 ms.
	ElectionTimeout time.Duration
	FirstStands     bool // the first of those that found a cluster stands for election at once
	// LeaderLease is how long a leader goes on without hearing from a quorum, at most
	// HeartbeatTimeout, which is the default. With less, a pause that the followers do not
	// notice ends the leadership. No promise rests on it: reads are proved by messages.
	LeaderLease time.Duration
	// CommitTimeout is how late a follower of an idle leader is told of a commit that nobody asks it for. Default 5 ms.
	CommitTimeout time.Duration
	// MaxAppendEntries bounds one replication message, together with the size of
	// an entry to 8 MiB. Default 32.
	MaxAppendEntries int
	// SnapshotBytes of log written since the last snapshot bring on the next, or as many as the state has if
	// that is more, up to 512 MiB; or as few as half of it, so that replicas do so at different times. Default 64 MiB.
	SnapshotBytes int64
	// DiskStall is the longest a write to disk may take before the replica stops.
	// Heartbeats do not touch the disk, so a leader whose disk hangs would lead on
	// without ever committing. Default 10 s.
	DiskStall time.Duration
}

func (t Timing) withDefaults() Timing {
	t.HeartbeatTimeout = cmp.Or(t.HeartbeatTimeout, 500*time.Millisecond)
	t.ElectionTimeout = cmp.Or(t.ElectionTimeout, 500*time.Millisecond)
	t.LeaderLease = cmp.Or(t.LeaderLease, t.HeartbeatTimeout)
	t.CommitTimeout = cmp.Or(t.CommitTimeout, 5*time.Millisecond)
	t.MaxAppendEntries = cmp.Or(t.MaxAppendEntries, 32)
	t.SnapshotBytes = cmp.Or(t.SnapshotBytes, 64<<20)
	t.DiskStall = cmp.Or(t.DiskStall, 10*time.Second)
	return t
}

// idleTimeout is after how long, up to twice, a leader that has nothing to send says so, and tries again what did not arrive.
// Followers learn of commits long before, by the Teller, and that the leader lives by its heartbeats.
func (t Timing) idleTimeout() time.Duration { return max(t.CommitTimeout, t.HeartbeatTimeout/2) }

// Validate says what is missing.
func (c *Config) Validate() error {
	switch {
	case c.ID == "":
		return errors.New("replica: ID is required")
	case c.AdvertiseAddress == "":
		return errors.New("replica: AdvertiseAddress is required")
	case c.Storage == nil && c.Disk == nil:
		return errors.New("replica: Disk or Storage is required")
	case c.Fatal == nil:
		return errors.New("replica: Fatal is required")
	case c.Dial == nil && len(c.InitialServers) > 1:
		return errors.New("replica: Dial is required with several servers")
	case c.Logger == nil:
		return errors.New("replica: Logger is required")
	}
	return nil
}
