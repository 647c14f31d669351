package setpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/backup"
)

const (
	// backupPath answers GET with the stream of an archive.
	backupPath = "/setpoint.v1.ClusterService/Backup"
	// backupsMax is how many archives one server writes at once; each keeps the
	// objects of its moment in memory.
	backupsMax = 2
	// refusalBytesMax is how much of a refusal is shown.
	refusalBytesMax = 1024
)

var errManyBackups = errors.New("too many backups are being made by this server: wait for one to end")

// BackupReport is what an archive holds; see package raftstore/backup.
type BackupReport = backup.Report

// BackupHeader is what an archive says of itself in front.
type BackupHeader = backup.Header

// BackupProgress is told how much of an archive has been read.
type BackupProgress func(h *BackupHeader, objects, bytes int64)

// newBackupHandler streams archives of the store.
func newBackupHandler(s *Server) http.Handler {
	slots := make(chan struct{}, backupsMax)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			http.Error(w, "use GET", http.StatusMethodNotAllowed)
			return
		}
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			http.Error(w, errManyBackups.Error(), http.StatusTooManyRequests)
			return
		}
		s.streamBackup(w, r)
	})
}

// streamBackup writes one archive. Once it has begun, an error can only cut the
// stream, and the client must see that.
func (s *Server) streamBackup(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	out := &countedWriter{Writer: w}
	header, err := s.log.Backup(r.Context(), out)
	switch {
	case err == nil:
		s.config.Logger.Info("backup made", "revision", header.Revision, "objects", header.Objects, "bytes", out.bytes)
	case out.bytes == 0:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		s.config.Logger.Warn("backup cut off", "revision", header.Revision, "bytes", out.bytes, "error", err)
		panic(http.ErrAbortHandler)
	}
}

type countedWriter struct {
	io.Writer
	bytes int64
}

// Write implements io.Writer.
func (c *countedWriter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.bytes += int64(n)
	return n, err
}

// FetchBackup writes an archive of a running cluster to out and checks it on the
// way. An archive that did not arrive whole is an error. Only the administrator may.
func FetchBackup(ctx context.Context, config *rest.Config, out io.Writer, progress BackupProgress) (BackupReport, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return BackupReport{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+backupPath, http.NoBody)
	if err != nil {
		return BackupReport{}, err
	}
	response, err := client.Do(request)
	if err != nil {
		return BackupReport{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		reason, _ := io.ReadAll(io.LimitReader(response.Body, refusalBytesMax))
		return BackupReport{}, fmt.Errorf("%w: %s", &statusError{response.Status}, reason)
	}
	return backup.Check(io.TeeReader(response.Body, out), progress)
}

// FetchBackupFile is FetchBackup into a file, which appears when it is whole and on
// the disk. Whatever had its name before is replaced.
func FetchBackupFile(ctx context.Context, config *rest.Config, path string, progress BackupProgress) (report BackupReport, err error) {
	temporary := path + ".tmp"
	file, err := os.OpenFile(temporary, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return report, err
	}
	report, err = FetchBackup(ctx, config, file, progress)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return report, errors.Join(err, os.Remove(temporary))
	}
	if err := os.Rename(temporary, path); err != nil {
		return report, err
	}
	return report, syncDir(filepath.Dir(path))
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// VerifyBackup reads an archive, loads it into a state machine of its own and
// compares what it holds with what it says.
func VerifyBackup(path string) (BackupReport, error) {
	file, err := os.Open(path)
	if err != nil {
		return BackupReport{}, err
	}
	defer file.Close()
	_, report, err := backup.Load(file)
	if err != nil {
		return BackupReport{}, fmt.Errorf("%s: %w", path, err)
	}
	return report, nil
}

// RestoreBackup makes the data directory of one server of an archive, offline. The
// servers of the new cluster are all of the options' initial servers. newCluster
// takes an archive of a cluster with another CA.
func RestoreBackup(ctx context.Context, path string, o ServerOptions, newCluster bool) (raftstore.Restored, error) {
	servers, err := o.servers()
	if err != nil {
		return raftstore.Restored{}, err
	}
	file, err := os.Open(path)
	if err != nil {
		return raftstore.Restored{}, err
	}
	defer file.Close()
	unlock, err := lockDataDir(o.DataDir, "server")
	if err != nil {
		return raftstore.Restored{}, err
	}
	defer unlock()
	clusterID, err := o.storedClusterID()
	if err != nil {
		return raftstore.Restored{}, err
	}
	founders := make([]raftstore.Server, len(servers))
	for i, server := range servers {
		founders[i] = raftstore.Server{ID: server.Name, Address: server.Endpoint}
	}
	restored, err := raftstore.Restore(ctx, file, raftstore.RestoreConfig{
		DataDir: o.DataDir, Name: o.Name, Servers: founders, ClusterID: clusterID, NewCluster: newCluster, Logger: o.Logger,
	})
	return restored, restoreError(path, o.DataDir, err)
}

// restoreError says what to do.
func restoreError(path, dir string, err error) error {
	switch {
	case errors.Is(err, backup.ErrDamaged), errors.Is(err, backup.ErrNewer):
		return fmt.Errorf("%s: %w: nothing was written", path, err)
	case errors.Is(err, raftstore.ErrHasState):
		return fmt.Errorf("%s: %w: stop its server and move raft, snapshots and state-marker elsewhere first, or choose another --data-dir; nothing was changed", dir, err)
	case errors.Is(err, raftstore.ErrOtherCluster):
		return fmt.Errorf("%w: give the --trust-dir of the cluster that it was made of, or --new-cluster if this is to be another one", err)
	}
	return err
}
