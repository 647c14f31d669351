package replica

import (
	"strconv"
	"time"

	"github.com/hashicorp/raft"
)

// Status describes this replica and, as far as it knows, its peers.
type Status struct {
	Servers    []ServerStatus
	Leadership Leadership
	// LastIndex is the last entry in the log here, CommitIndex the last known to
	// be on a quorum, SnapshotIndex the last inside the newest snapshot.
	LastIndex, CommitIndex, SnapshotIndex uint64
	// LogBytes is the size of the log on disk.
	LogBytes int64
	// SyncP99 is the time within which 99 of 100 recent writes were on disk.
	SyncP99 time.Duration
	// SyncSlowest is the longest of the last few writes, or of one that is under way.
	SyncSlowest time.Duration
	// ApplyMax is the longest that one of the recent entries, or taking a snapshot,
	// kept the state machine busy.
	ApplyMax time.Duration
}

// DiskSlow has a value when a write to disk has taken slowAfter and is not done.
func (r *Replica) DiskSlow() <-chan struct{} { return r.diskSlow }

// DiskWaits is how long a write to disk has been under way, 0 if none is, and whether that is too long for a leader.
func (r *Replica) DiskWaits() (time.Duration, bool) {
	if !r.started() {
		return 0, false
	}
	waits := r.log.guard.writes.Waiting()
	return waits, waits >= slowAfter
}

// ServerStatus is one member as this replica sees it.
type ServerStatus struct {
	Server
	Voter bool
	// LastContact is when the leader heard last from this server; on a follower,
	// when it heard last from the leader. Zero if never, and between followers.
	LastContact time.Time
}

// Status returns the present status. Before raft runs it is empty.
func (r *Replica) Status() Status {
	leadership, _ := r.Leadership()
	if !r.started() {
		return Status{Leadership: leadership}
	}
	s := Status{
		Leadership: leadership, LastIndex: r.raft.LastIndex(), CommitIndex: r.raft.CommitIndex(),
		SnapshotIndex: snapshotIndex(r.raft), LogBytes: r.cfg.Storage.sizeBytes(), SyncP99: r.log.guard.writes.P99(),
		SyncSlowest: r.log.guard.writes.Slowest(),
		ApplyMax:    r.applies.Longest(),
	}
	s.Servers = r.servers(leadership)
	return s
}

// Servers are the members of the log; none before the replica has started. For those who ask
// every second: it spares them the figures of Status.
func (r *Replica) Servers() []ServerStatus {
	if !r.started() {
		return nil
	}
	leadership, _ := r.Leadership()
	return r.servers(leadership)
}

func (r *Replica) servers(leadership Leadership) []ServerStatus {
	var servers []ServerStatus
	for _, server := range r.raft.GetConfiguration().Configuration().Servers {
		servers = append(servers, ServerStatus{
			Server:      Server{ID: string(server.ID), Address: plainAddress(server.Address)},
			Voter:       server.Suffrage == raft.Voter,
			LastContact: r.lastContact(string(server.ID), leadership),
		})
	}
	return servers
}

// snapshotIndex is where the newest snapshot ends, 0 if there is none.
func snapshotIndex(instance *raft.Raft) uint64 {
	return number(instance.Stats(), "last_snapshot_index")
}

// number is one of raft's figures, which the library gives as text.
func number(stats map[string]string, name string) uint64 {
	n, _ := strconv.ParseUint(stats[name], 10, 64)
	return n
}

func (r *Replica) lastContact(id string, l Leadership) time.Time {
	switch {
	case l.LeaderID == r.id:
		return r.transport.LastContact(raft.ServerID(id))
	case l.LeaderID == id:
		return r.raft.LastContact()
	}
	return time.Time{}
}
