package raftstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/backup"
	"github.com/setpoint-io/setpoint/raftstore/replica"
)

// RevisionGap is added to the revision by a restore and by a recovery, so that every
// client finds what it knows too old and lists again: no store makes as many
// changes between two backups.
const RevisionGap = 1_000_000_000

var (
	// ErrNoState: the data directory holds no state.
	ErrNoState = replica.ErrNoState
	// ErrHasState: the data directory holds state, which is never deleted.
	ErrHasState = replica.ErrHasState
	// ErrOtherCluster: the backup is of a cluster with another identity.
	ErrOtherCluster = errors.New("the backup is of another cluster")
)

// Backup writes an archive of all objects with every write acknowledged before the
// call, from any replica, while others write. It holds the objects of that moment in
// memory until it ends.
func (s *Store) Backup(ctx context.Context, out io.Writer) (backup.Header, error) {
	root, err := s.ReadIndex(ctx)
	if err != nil {
		return backup.Header{}, err
	}
	return backup.Write(out, root, backup.Header{Term: s.Leadership().Term, Time: time.Now()})
}

// RestoreConfig says what to make of an archive.
type RestoreConfig struct {
	// DataDir must hold no state; nothing else may use it.
	DataDir string
	// Name is the server whose data directory it is, one of Servers, the voters of
	// the new cluster. Restored on each of them from one archive, they start as
	// equals.
	Name    string
	Servers []Server
	// ClusterID, if set, must be the archive's. NewCluster drops the archive's, so
	// that the cluster that starts with it gives it its own.
	ClusterID  string
	NewCluster bool
	Logger     *slog.Logger
}

// Restored says what came out of an archive.
type Restored struct {
	backup.Report
	// Revision is the one that the store begins with.
	Revision uint64
}

// Restore makes a data directory of an archive. Nothing is written before the whole
// archive was verified. Errors wrap backup.ErrDamaged, ErrHasState, ErrOtherCluster
// or ErrFeatureLevel.
func Restore(ctx context.Context, archive io.Reader, cfg RestoreConfig) (Restored, error) {
	root, report, err := backup.Load(archive)
	if err != nil {
		return Restored{}, err
	}
	if report.FeatureLevel > FeatureLevel {
		return Restored{}, levelError(report.FeatureLevel, FeatureLevel)
	}
	if cfg.ClusterID != "" && !cfg.NewCluster && report.ClusterID != "" && report.ClusterID != cfg.ClusterID {
		return Restored{}, fmt.Errorf("%w: it has the identity %s, this one %s", ErrOtherCluster, report.ClusterID, cfg.ClusterID)
	}
	life := replica.NextLife{
		ServerID: cfg.Name, Servers: voters(cfg.Servers), Root: root, ClusterID: report.ClusterID,
		Revisions: RevisionGap, LastIndex: report.Index, LastTerm: report.Term,
	}
	if cfg.NewCluster {
		life.ClusterID = ""
	}
	if err := life.FoundFiles(ctx, cfg.DataDir, cfg.Logger); err != nil {
		return Restored{}, err
	}
	return Restored{Report: report, Revision: root.Revision + RevisionGap}, nil
}

func voters(servers []Server) []ServerStatus {
	all := make([]ServerStatus, len(servers))
	for i, server := range servers {
		all[i] = ServerStatus{Server: server, Voter: true}
	}
	return all
}
