package backups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"filippo.io/age"
	"github.com/robfig/cron/v3"

	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/raftstore/backup"
	"github.com/setpoint-io/setpoint/server/backups/place"
	"github.com/setpoint-io/setpoint/server/backups/sealed"
)

const (
	// RetryAfter is the pause after a backup that failed.
	RetryAfter = 5 * time.Minute
	// startPause lets a server take part in its cluster before it makes up for a backup.
	startPause = 10 * time.Second
	// lateAfter is how long a backup may be due, as in deploy/monitoring: three attempts.
	lateAfter = 15 * time.Minute
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
	place    place.Place
	// recipients are to whom the files are encrypted, if to anybody.
	recipients []age.Recipient
	store      Store
	logger     *slog.Logger

	// due is when the next one is to be made, or the one that has failed since, or when one that is being made is to be whole;
	// last is when the newest was made, 0 if there is
	// none. Both in Unix seconds.
	due, last atomic.Int64
	lastBytes atomic.Int64
	failures  atomic.Int64
}

// State is how the backups of one server are.
type State struct {
	// Last is when the newest was made, zero if there is none. Due is when the next one is to be made, or the one that has failed since,
	// or when one that is being made is to be whole.
	Last time.Time `json:"last,omitzero"`
	Due  time.Time `json:"due,omitzero"`
	// Bytes is how long the newest is.
	Bytes int64 `json:"bytes"`
}

// Late reports whether one should have been made lateAfter ago.
func (s *State) Late(now time.Time) bool { return !s.Due.IsZero() && now.Sub(s.Due) > lateAfter }

// State returns nil for a nil Maker.
func (m *Maker) State() *State {
	if m == nil {
		return nil
	}
	return &State{Last: unix(m.last.Load()), Due: unix(m.due.Load()), Bytes: m.lastBytes.Load()}
}

// unix is the time of a number of seconds, zero for 0.
func unix(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// New returns what makes backups as a valid Config says, nil if it says none.
func New(server string, config Config, store Store, logger *slog.Logger) (*Maker, error) {
	if config.Schedule == "" {
		return nil, nil
	}
	m := &Maker{server: server, config: config, store: store, logger: logger}
	var errs [3]error
	m.schedule, errs[0] = config.schedule()
	m.recipients, errs[1] = config.recipients()
	m.place, errs[2] = place.At(config.To, config.S3)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return m, nil
}

// lookBack finds the newest backup that an earlier process has made.
func (m *Maker) lookBack(ctx context.Context) error {
	files, err := own(ctx, m.place, m.server)
	if err != nil || len(files) == 0 {
		return err
	}
	newest := files[len(files)-1]
	at, _ := madeAt(m.server, newest.Name)
	m.last.Store(at.Unix())
	m.lastBytes.Store(newest.Bytes)
	return nil
}

// Run makes them until the context ends.
func (m *Maker) Run(ctx context.Context) {
	for wait := m.first(ctx); process.Sleep(ctx, wait); {
		if m.once(ctx) {
			wait = m.plan(time.Now())
		} else {
			wait = RetryAfter
		}
	}
}

// first is how long to wait at the start: a time that passed meanwhile is made up for. A folder of another machine or a bucket may take
// long to answer, so this is no part of a server's start.
func (m *Maker) first(ctx context.Context) time.Duration {
	since := time.Now()
	m.plan(since) // while the place does not answer it may become late
	for err := m.lookBack(ctx); err != nil; err = m.lookBack(ctx) {
		m.logger.Warn("backups cannot be looked at", "to", m.config.To, "err", err, "again", RetryAfter)
		if !process.Sleep(ctx, RetryAfter) {
			return RetryAfter
		}
	}
	if last := m.last.Load(); last != 0 {
		since = time.Unix(last, 0)
	}
	wait := max(startPause, m.plan(since))
	m.due.Store(time.Now().Add(wait).Unix())
	return wait
}

// plan notes when the backup after a time is due, and says how long that is from now.
func (m *Maker) plan(after time.Time) time.Duration {
	due := m.schedule.Next(after.Local())
	m.due.Store(due.Unix())
	return time.Until(due)
}

// once makes one and says how that went.
func (m *Maker) once(ctx context.Context) bool {
	now, due := time.Now(), m.due.Load()
	m.due.Store(now.Add(place.PutTimeout).Unix())
	name := fileName(m.server, now, len(m.recipients) > 0)
	report, err := m.make(ctx, name)
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		m.failures.Add(1)
		m.due.Store(due)
		m.logger.Warn("no backup was made", "to", m.config.To, "err", err, "again", RetryAfter)
		return false
	}
	m.last.Store(now.Unix())
	m.logger.Info("backup made", "file", name, "revision", report.Revision, "objects", report.Objects)
	if err := m.prune(ctx); err != nil {
		m.logger.Warn("old backups stay", "to", m.config.To, "err", err)
	}
	return true
}

// make writes a backup under a name.
func (m *Maker) make(ctx context.Context, name string) (report backup.Report, err error) {
	bytes, err := m.place.Put(ctx, m.server, name, func(out io.Writer) (err error) {
		report, err = m.write(ctx, out)
		return err
	})
	if err == nil {
		m.lastBytes.Store(bytes)
	}
	return report, err
}

// write writes all objects, encrypted if they are to be, and loads on the way what it writes.
func (m *Maker) write(ctx context.Context, out io.Writer) (backup.Report, error) {
	file, err := sealed.Writer(out, m.recipients)
	if err != nil {
		return backup.Report{}, err
	}
	drill := newDrill()
	header, err := m.store.Backup(ctx, io.MultiWriter(file, drill))
	report, loadErr := drill.end(err)
	switch {
	case loadErr != nil:
		return report, loadErr
	case report.Revision != header.Revision:
		return report, fmt.Errorf("%w: it is of revision %d, not %d", backup.ErrDamaged, report.Revision, header.Revision)
	}
	return report, file.Close()
}

// prune removes this server's oldest backups, but for the newest Keep.
func (m *Maker) prune(ctx context.Context) error {
	files, err := own(ctx, m.place, m.server)
	if err != nil {
		return err
	}
	for _, file := range files[:max(0, len(files)-m.config.Keep)] {
		err = errors.Join(err, m.place.Remove(ctx, file.Name))
	}
	return err
}
