package offline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/backup"
	"github.com/setpoint-io/setpoint/server/admin"
)

// Restored says what a restore made of an archive.
type Restored = raftstore.Restored

// VerifyBackup reads an archive, which name is the name of, loads it into a state machine of its own and
// compares what it holds with what it says.
func VerifyBackup(archive io.Reader, name string) (admin.BackupReport, error) {
	_, report, err := backup.Load(archive)
	if err != nil {
		return admin.BackupReport{}, fmt.Errorf("%s: %w", name, err)
	}
	return report, nil
}

// RestoreBackup makes the data directory of one server of an archive, which name is the name of, offline. The
// servers of the new cluster are all of the options' initial servers. newCluster
// takes an archive of a cluster with another CA.
func RestoreBackup(ctx context.Context, archive io.Reader, name string, o Options, newCluster bool) (Restored, error) {
	servers, err := o.servers()
	if err != nil {
		return Restored{}, err
	}
	unlock, err := process.Lock(o.DataDir, process.ServerRole)
	if err != nil {
		return Restored{}, err
	}
	defer unlock()
	clusterID, err := o.storedClusterID()
	if err != nil {
		return Restored{}, err
	}
	founders := make([]raftstore.Server, len(servers))
	for i, server := range servers {
		founders[i] = raftstore.Server{ID: server.Name, Address: server.Endpoint}
	}
	restored, err := raftstore.Restore(ctx, archive, raftstore.RestoreConfig{
		DataDir: o.DataDir, Founded: o.founded(), Name: o.Name, Servers: founders, ClusterID: clusterID,
		NewCluster: newCluster, Time: time.Now(), Logger: o.Logger,
	})
	return restored, restoreError(name, o.DataDir, err)
}

// restoreError says what to do.
func restoreError(name, dir string, err error) error {
	switch {
	case errors.Is(err, backup.ErrDamaged), errors.Is(err, backup.ErrNewer):
		return fmt.Errorf("%s: %w: nothing was written", name, err)
	case errors.Is(err, raftstore.ErrHasState):
		return fmt.Errorf(
			"%s: %w: stop its server and move raft, snapshots and state-marker elsewhere first, or choose another --data-dir; nothing was changed",
			dir,
			err,
		)
	case errors.Is(err, raftstore.ErrOtherCluster):
		return fmt.Errorf("%w: give the --trust-dir of the cluster that it was made of, or --new-cluster if this is to be another one", err)
	}
	return err
}
