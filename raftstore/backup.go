package raftstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/backup"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/founded"
	"github.com/setpoint-io/setpoint/raftstore/record"
	"github.com/setpoint-io/setpoint/raftstore/replica"
	"github.com/setpoint-io/setpoint/raftstore/replica/birth"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

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
	// Disk, or DataDir for files, must hold no state; nothing else may use it.
	Disk    replica.Disk
	DataDir string
	// Name is the server whose data directory it is, one of Servers, the voters of
	// the new cluster. Each of them has to be restored from the same archive with the
	// same list. The first of Servers gets the data; the others take part, and get
	// them from it when they run.
	Name    string
	Servers []Server
	// Time is that of the restore: the revision and the log begin with it.
	Time time.Time
	// Founded is where the founding is written down, if anywhere: what is restored comes of the archive's life too.
	Founded founded.Keeper
	// ClusterID, if set, must be the archive's. NewCluster drops the archive's, so
	// that the cluster that starts with it gives it its own.
	ClusterID  string
	NewCluster bool
	// Rewrite, if set, makes of each record what the store begins with, as state.Root.Rewritten: the archive is verified before.
	Rewrite func(*record.Record) *record.Record
	Logger  *slog.Logger
}

// Restored says what came out of an archive.
type Restored struct {
	backup.Report
	// Revision is the one that the store begins with, Life the name of what begins.
	// They are 0 and "" for a server that gets the data from the first one.
	Revision uint64
	Life     string
	// Encrypted is how many values only their keys can read.
	Encrypted int
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
	if cfg.Rewrite != nil {
		root = root.Rewritten(cfg.Rewrite)
	}
	life := replica.NextLife{
		ServerID: cfg.Name, Servers: voters(cfg.Servers), Root: root, ClusterID: report.ClusterID,
		Life: birth.Name(), Backup: fmt.Sprintf("%d-%x", report.Revision, report.StateHash),
		LastIndex: report.Index, LastTerm: report.Term, Begins: cfg.Time,
	}
	if cfg.NewCluster {
		life.ClusterID = ""
	}
	disk := cfg.Disk
	if disk == nil {
		disk = replica.Files{Dir: cfg.DataDir, Logger: cfg.Logger}
	}
	if err := life.Found(ctx, disk); err != nil {
		return Restored{}, err
	}
	if !cfg.NewCluster { // nodes that have pinned the life of the archive may follow
		if err := founded.Open(cfg.Founded).Adopt(root.Life); err != nil {
			return Restored{}, fmt.Errorf("the data directory is restored, and its server may be started, but nodes that belong to the backup's life "+
				"will not follow it until they are reset: %w", err)
		}
	}
	if !life.HasData() {
		return Restored{Report: report, Encrypted: encrypted(root)}, nil
	}
	return Restored{Report: report, Revision: life.Revision(), Life: life.Life, Encrypted: encrypted(root)}, nil
}

func encrypted(root *state.Root) (n int) {
	for r := range root.All("") {
		if len(r.Value) > 0 && r.Value[0] == command.EncodingEncrypted {
			n++
		}
	}
	return n
}

func voters(servers []Server) []ServerStatus {
	all := make([]ServerStatus, len(servers))
	for i, server := range servers {
		all[i] = ServerStatus{Server: server, Voter: true}
	}
	return all
}
