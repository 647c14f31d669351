package replica

import (
	"context"
	"fmt"
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
	// ApplyMax is the longest that one of the recent entries, or taking a snapshot,
	// kept the state machine busy.
	ApplyMax time.Duration
}

// ServerStatus is one member as this replica sees it.
type ServerStatus struct {
	Server
	Voter bool
	// LastContact is when the leader heard last from this server; on a follower,
	// when it heard last from the leader. Zero if never, and between followers.
	LastContact time.Time
}

// Status returns the present status.
func (r *Replica) Status() Status {
	leadership, _ := r.Leadership()
	s := Status{
		Leadership: leadership, LastIndex: r.raft.LastIndex(), CommitIndex: r.raft.CommitIndex(),
		SnapshotIndex: snapshotIndex(r.raft), LogBytes: r.cfg.Storage.sizeBytes(), SyncP99: r.log.guard.writes.p99(),
		ApplyMax: r.applies.longest(),
	}
	for _, server := range r.raft.GetConfiguration().Configuration().Servers {
		s.Servers = append(s.Servers, ServerStatus{
			Server:      Server{ID: string(server.ID), Address: string(server.Address)},
			Voter:       server.Suffrage == raft.Voter,
			LastContact: r.lastContact(string(server.ID), leadership),
		})
	}
	return s
}

// snapshotIndex is where the newest snapshot ends, 0 if there is none.
func snapshotIndex(instance *raft.Raft) uint64 {
	index, _ := strconv.ParseUint(instance.Stats()["last_snapshot_index"], 10, 64)
	return index
}

func (r *Replica) lastContact(id string, l Leadership) time.Time {
	switch {
	case l.LeaderID == r.cfg.ID:
		return r.transport.lastContact(raft.ServerID(id))
	case l.LeaderID == id:
		return r.raft.LastContact()
	}
	return time.Time{}
}

// AddServer makes the server a member that receives the log but has no vote, or
// updates its address. Only the leader can. Errors wrap ErrNotLeader.
func (r *Replica) AddServer(ctx context.Context, s Server) error {
	if r.isVoter(s.ID) {
		return r.changed(ctx, r.raft.AddVoter(raft.ServerID(s.ID), raft.ServerAddress(s.Address), 0, messageTimeout))
	}
	return r.changed(ctx, r.raft.AddNonvoter(raft.ServerID(s.ID), raft.ServerAddress(s.Address), 0, messageTimeout))
}

// PromoteServer gives a member its vote. The caller has seen that it caught up.
func (r *Replica) PromoteServer(ctx context.Context, s Server) error {
	return r.changed(ctx, r.raft.AddVoter(raft.ServerID(s.ID), raft.ServerAddress(s.Address), 0, messageTimeout))
}

// RemoveServer ends a membership.
func (r *Replica) RemoveServer(ctx context.Context, id string) error {
	return r.changed(ctx, r.raft.RemoveServer(raft.ServerID(id), 0, messageTimeout))
}

func (r *Replica) changed(ctx context.Context, future raft.Future) error {
	if err := r.await(ctx, future); err != nil {
		return fmt.Errorf("changing the membership: %w", proposeError(err))
	}
	return nil
}

func (r *Replica) isVoter(id string) bool {
	for _, s := range r.raft.GetConfiguration().Configuration().Servers {
		if s.ID == raft.ServerID(id) {
			return s.Suffrage == raft.Voter
		}
	}
	return false
}
