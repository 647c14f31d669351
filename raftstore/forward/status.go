package forward

import (
	"time"

	"github.com/setpoint-io/setpoint/raftstore/forward/forwardpb"
)

// Status is what a server says about its replica.
type Status struct {
	Name string
	// ID is its member id, Phase how far it is on its way to be a member.
	ID, Phase string
	// Nonce is that of a founder's data directory; Founders are those it counted.
	Nonce    string
	Founders map[string]string
	// Leader is the member it follows, "" if it knows none, and Since when it began to.
	Leader, LeaderAddress string
	Since                 time.Time
	Term                  uint64
	// Revision is the last applied, AppliedIndex the log entry that made it;
	// LastIndex is the end of the log, SnapshotIndex the end of the snapshot.
	Revision, AppliedIndex, LastIndex, SnapshotIndex uint64
	LogBytes                                         int64
	// SyncP99 is the time within which 99 of 100 recent writes were on disk.
	SyncP99 time.Duration
	// SyncSlowest is the longest of the last few writes, or of one that is under way; 0 of an earlier release.
	SyncSlowest time.Duration
	// Space is the room on its disk.
	Space Space
	// FeatureLevel is the highest that it can apply, 0 of a release before levels. HeldLevel, if not 0, is where it holds a cluster that
	// has begun.
	FeatureLevel, HeldLevel uint64
	// Life is the one that its data belong to; Backup tells which backup was restored
	// there, while it waits to begin with it.
	Life, Backup string
}

// Space is the room on a server's disk, in bytes. Free counts beside the reserve.
type Space struct {
	FreeBytes, HeadroomBytes int64
	// Low says that writes should be refused for it.
	Low bool
}

func (s Status) toWire() *forwardpb.StatusResponse {
	return &forwardpb.StatusResponse{
		Name: s.Name, Id: s.ID, Phase: s.Phase, Nonce: s.Nonce, Founders: s.Founders,
		Leader: s.Leader, LeaderAddress: s.LeaderAddress, SinceUnixMilliseconds: s.Since.UnixMilli(),
		Term: s.Term, Revision: s.Revision,
		AppliedIndex: s.AppliedIndex, LastIndex: s.LastIndex, SnapshotIndex: s.SnapshotIndex,
		LogBytes: s.LogBytes, SyncP99Microseconds: s.SyncP99.Microseconds(),
		SyncSlowestMicroseconds: s.SyncSlowest.Microseconds(),
		FreeBytes:               s.Space.FreeBytes, HeadroomBytes: s.Space.HeadroomBytes, LowSpace: s.Space.Low,
		FeatureLevel: s.FeatureLevel, HeldLevel: s.HeldLevel, Life: s.Life, Backup: s.Backup,
	}
}

func statusFromWire(m *forwardpb.StatusResponse) Status {
	return Status{
		Name: m.GetName(), ID: m.GetId(), Phase: m.GetPhase(), Nonce: m.GetNonce(), Founders: m.GetFounders(),
		Leader: m.GetLeader(), LeaderAddress: m.GetLeaderAddress(), Since: time.UnixMilli(m.GetSinceUnixMilliseconds()),
		Term: m.GetTerm(), Revision: m.GetRevision(),
		AppliedIndex: m.GetAppliedIndex(), LastIndex: m.GetLastIndex(), SnapshotIndex: m.GetSnapshotIndex(),
		LogBytes: m.GetLogBytes(), SyncP99: time.Duration(m.GetSyncP99Microseconds()) * time.Microsecond,
		SyncSlowest:  time.Duration(m.GetSyncSlowestMicroseconds()) * time.Microsecond,
		Space:        Space{FreeBytes: m.GetFreeBytes(), HeadroomBytes: m.GetHeadroomBytes(), Low: m.GetLowSpace()},
		FeatureLevel: m.GetFeatureLevel(), HeldLevel: m.GetHeldLevel(), Life: m.GetLife(), Backup: m.GetBackup(),
	}
}
