package backups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/setpoint-io/setpoint/raftstore/backup"
)

const (
	// RetryAfter is the pause after a backup that failed.
	RetryAfter = 5 * time.Minute
	// startPause lets a server take part in its cluster before it makes up for a backup.
	startPause = 10 * time.Second
)

// Store is what is backed up.
type Store interface {
	// Backup writes all objects of one moment.
	Backup(ctx context.Context, out io.Writer) (backup.Header, error)
}

// Maker makes the backups of one server. Its metrics may be asked for at any time.
type Maker struct {
	server   string
	config   Config
	schedule cron.Schedule
	store    Store
	logger   *slog.Logger

	// due is when the next one is to be made, or the one that has failed since; last is when the newest was made, 0 if there is
	// none. Both in Unix seconds.
	due, last atomic.Int64
	lastBytes atomic.Int64
	failures  atomic.Int64
}

// New returns what makes backups as a valid Config says, nil if it says none.
func New(server string, config Config, store Store, logger *slog.Logger) (*Maker, error) {
	if config.Schedule == "" {
		return nil, nil
	}
	schedule, err := config.schedule()
	if err != nil {
		return nil, err
	}
	return &Maker{server: server, config: config, schedule: schedule, store: store, logger: logger}, nil
}

// lookBack finds the newest backup that an earlier process has made.
func (m *Maker) lookBack() {
	names, _ := own(m.config.Folder, m.server)
	if len(names) == 0 {
		return
	}
	newest := names[len(names)-1]
	at, _ := madeAt(m.server, newest)
	m.last.Store(at.Unix())
	if info, err := os.Stat(filepath.Join(m.config.Folder, newest)); err == nil {
		m.lastBytes.Store(info.Size())
	}
}

// Run makes them until the context ends.
func (m *Maker) Run(ctx context.Context) {
	for wait := m.first(); sleep(ctx, wait); {
		if m.once(ctx) {
			wait = m.plan(time.Now())
		} else {
			wait = RetryAfter
		}
	}
}

// first is how long to wait at the start: a time that passed meanwhile is made up for. A folder of another machine may take long to
// answer, so this is no part of a server's start.
func (m *Maker) first() time.Duration {
	m.lookBack()
	if last := m.last.Load(); last != 0 {
		return max(startPause, m.plan(time.Unix(last, 0)))
	}
	return m.plan(time.Now())
}

// plan notes when the backup after a time is due, and says how long that is from now.
func (m *Maker) plan(after time.Time) time.Duration {
	due := m.schedule.Next(after.Local())
	m.due.Store(due.Unix())
	return time.Until(due)
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// once makes one and says how that went.
func (m *Maker) once(ctx context.Context) bool {
	now := time.Now()
	report, err := m.make(ctx, now)
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		m.failures.Add(1)
		m.logger.Warn("no backup was made", "folder", m.config.Folder, "err", err, "again", RetryAfter)
		return false
	}
	m.last.Store(now.Unix())
	m.lastBytes.Store(report.ArchiveBytes)
	m.logger.Info("backup made", "file", fileName(m.server, now), "revision", report.Revision, "objects", report.Objects)
	if err := m.prune(); err != nil {
		m.logger.Warn("old backups stay", "folder", m.config.Folder, "err", err)
	}
	return true
}

// make writes a backup, reads it back, and gives it its name. What an earlier process has left of one is written anew.
func (m *Maker) make(ctx context.Context, now time.Time) (backup.Report, error) {
	part := filepath.Join(m.config.Folder, "."+m.server+suffix+partSuffix)
	return backup.ToFile(part, filepath.Join(m.config.Folder, fileName(m.server, now)), func(file *os.File) (backup.Report, error) {
		return m.fill(ctx, file)
	})
}

// fill writes the objects into a file and reads them back.
func (m *Maker) fill(ctx context.Context, file *os.File) (backup.Report, error) {
	header, err := m.store.Backup(ctx, file)
	if err != nil {
		return backup.Report{}, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return backup.Report{}, err
	}
	_, report, err := backup.Load(file)
	if err == nil && report.Revision != header.Revision {
		err = fmt.Errorf("%w: it is of revision %d, not %d", backup.ErrDamaged, report.Revision, header.Revision)
	}
	if err != nil {
		return report, fmt.Errorf("what was written cannot be read back: %w", err)
	}
	return report, nil
}

// prune removes this server's oldest backups, but for the newest Keep.
func (m *Maker) prune() error {
	names, err := own(m.config.Folder, m.server)
	if err != nil {
		return err
	}
	for _, name := range names[:max(0, len(names)-m.config.Keep)] {
		err = errors.Join(err, os.Remove(filepath.Join(m.config.Folder, name)))
	}
	return err
}
