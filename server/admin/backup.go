package admin

import (
	"errors"
	"io"
	"net/http"

	"github.com/setpoint-io/setpoint/raftstore/backup"
)

const (
	// backupsMax is how many archives one server writes at once; each keeps the
	// objects of its moment in memory.
	backupsMax = 2
)

var errManyBackups = errors.New("too many backups are being made by this server: wait for one to end")

// BackupReport is what an archive holds; see package raftstore/backup.
type BackupReport = backup.Report

// BackupHeader is what an archive says of itself in front.
type BackupHeader = backup.Header

// BackupProgress is told how much of an archive has been read.
type BackupProgress func(h *BackupHeader, objects, bytes int64)

// backupHandler streams archives of the store.
func (a *Admin) backupHandler() http.Handler {
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
		a.streamBackup(w, r)
	})
}

// streamBackup writes one archive. Once it has begun, an error can only cut the
// stream, and the client must see that.
func (a *Admin) streamBackup(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	out := &countedWriter{Writer: w}
	header, err := a.config.Log.Backup(r.Context(), out)
	switch {
	case err == nil:
		a.config.Logger.Info("backup made", "revision", header.Revision, "objects", header.Objects, "bytes", out.bytes)
	case out.bytes == 0:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		a.config.Logger.Warn("backup cut off", "revision", header.Revision, "bytes", out.bytes, "err", err)
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
