package raftstore

import (
	"time"

	"github.com/setpoint-io/setpoint/raftstore/replica"
)

// ServerStatus is one member as this replica sees it.
type ServerStatus = replica.ServerStatus

// Status describes this replica and what it knows of the cluster.
type Status struct {
	// Name is this server's, ID the member id under which it takes part, Phase how
	// far it is on its way to be a member.
	Name, ID  string
	Phase     replica.Phase
	ClusterID string
	// Life is the one that this server's data belong to, "" if it has no name yet.
	Life string
	// FeatureLevel is what all members have agreed to understand.
	FeatureLevel uint64
	// HighestLevel is what this server can apply; HeldLevel, if not 0, is where it holds the cluster.
	HighestLevel, HeldLevel uint64
	Servers                 []ServerStatus
	// Leader, LeaderID and Term are those of Leadership.
	Leader                  bool
	LeaderID, LeaderAddress string
	Term                    uint64
	// Revision and AppliedIndex are those of the local state; CommitIndex and
	// LastIndex of the log; SnapshotIndex is the end of the newest snapshot.
	Revision, AppliedIndex, CommitIndex, LastIndex, SnapshotIndex uint64
	// LogBytes is the size of the log on disk.
	LogBytes int64
	// SyncP99 is the time within which 99 of 100 recent writes were on disk.
	SyncP99 time.Duration
	// SyncSlowest is the longest of the last few writes, or of one that is under way.
	SyncSlowest time.Duration
	// ApplyMax is the longest that one of the recent entries, or taking a snapshot,
	// kept the state machine busy.
	ApplyMax time.Duration
	// StepDowns counts how often this replica, since it started, stopped leading because
	// most voters did not answer in time.
	StepDowns uint64
	// Elections counts the leaders that this replica has known since it started, one for each term.
	Elections uint64
	// Space is the room on this server's disk.
	Space SpaceStatus
	// ObjectsBytes is what all objects take in memory, ObjectsLimitBytes what they may if
	// this server leads; not more than 0 is no bound.
	ObjectsBytes, ObjectsLimitBytes int64
	// Failure is why the replica stopped itself, or nil.
	Failure error
}

// Servers are the members of the log, as Status has them, without its cost; none before this server knows them.
func (s *Store) Servers() []ServerStatus { return s.replica.Servers() }

// Space is the room on this server's disk.
func (s *Store) Space() SpaceStatus { return s.replica.Space() }

// Status returns the present status.
func (s *Store) Status() Status {
	r, root, beginning := s.replica.Status(), s.Root(), s.replica.Beginning()
	return Status{
		Name: s.cfg.Name, ID: beginning.ID, Phase: beginning.Phase, ClusterID: root.ClusterID, Life: beginning.Life,
		FeatureLevel: root.FeatureLevel, HighestLevel: s.cfg.FeatureLevel, HeldLevel: s.cfg.HoldFeatureLevel,
		Servers: r.Servers,
		Leader:  r.Leadership.Leader, LeaderID: r.Leadership.LeaderID,
		LeaderAddress: r.Leadership.LeaderAddress, Term: r.Leadership.Term,
		Revision: root.Revision, AppliedIndex: root.Index, CommitIndex: r.CommitIndex,
		LastIndex: r.LastIndex, SnapshotIndex: r.SnapshotIndex,
		LogBytes: r.LogBytes, SyncP99: r.SyncP99, SyncSlowest: r.SyncSlowest, ApplyMax: r.ApplyMax,
		StepDowns: s.stepDowns.Load(), Elections: r.Leadership.Elections, Space: s.replica.Space(),
		ObjectsBytes: takenBytes(root), ObjectsLimitBytes: s.objectsLimit, Failure: s.replica.Failed(),
	}
}
