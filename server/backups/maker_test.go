package backups

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/backup"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/state"
	"github.com/setpoint-io/setpoint/server/backups/place"
)

// store is a state that backups are made of, or what goes wrong.
type store struct {
	state *state.State
	wrong atomic.Pointer[wrong]
}

// wrong is what goes wrong: fails, if set, is the answer; cut leaves the end of the archive out; slow is how long it takes.
type wrong struct {
	fails error
	cut   bool
	slow  time.Duration
}

func newStore() *store {
	s := &store{state: state.New(state.Options{})}
	s.wrong.Store(&wrong{})
	for i, op := range []command.Op{{Kind: command.SetClusterID, Value: []byte("c")}, {Kind: command.Put, Key: "/k", UID: "u", Value: []byte("v")}} {
		s.state.Apply(uint64(i+1), 1, &command.Entry{Commands: []command.Command{{Ops: []command.Op{op}}}})
	}
	return s
}

// Backup implements Store.
func (s *store) Backup(_ context.Context, out io.Writer) (backup.Header, error) {
	now := s.wrong.Load()
	time.Sleep(now.slow)
	if now.fails != nil {
		return backup.Header{}, now.fails
	}
	if now.cut {
		out = &cutWriter{out, 20}
	}
	return backup.Write(out, s.state.Root(), backup.Header{Term: 1, Time: time.Now()})
}

// cutWriter keeps the first bytes and says that it keeps all, as a disk may that loses what it was told.
type cutWriter struct {
	out  io.Writer
	left int
}

// Write implements io.Writer.
func (c *cutWriter) Write(p []byte) (int, error) {
	n := min(len(p), c.left)
	c.left -= n
	_, err := c.out.Write(p[:n])
	return len(p), err
}

// begin runs a maker of server a in the bubble.
func begin(t *testing.T, folder string, s Store, keep int) *Maker {
	t.Helper()
	config := Config{Schedule: "@every 6h", To: folder, Keep: keep}
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	m, err := New("a", config, s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); m.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return m
}

// pass lets time pass.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func names(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// at is a place by its address.
func at(t *testing.T, address string) place.Place {
	t.Helper()
	p, err := place.At(address, place.S3{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ownNames are the backups of server a.
func ownNames(t *testing.T, folder string) (names []string, err error) {
	t.Helper()
	files, err := own(t.Context(), at(t, folder), "a")
	for _, file := range files {
		names = append(names, file.Name)
	}
	return names, err
}

// TestTheNewestStay: one every six hours, three of them, and nothing of others goes.
func TestTheNewestStay(t *testing.T) {
	folder := t.TempDir()
	others := []string{".b.backup.part", "a-b-20000101T000000Z.backup", "a-monday.backup", "b-20000101T000000Z.backup", "notes"}
	for _, name := range others {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		m := begin(t, folder, newStore(), 3)
		pass(5 * time.Hour)
		if got := names(t, folder); !slices.Equal(got, others) {
			t.Errorf("before the time: %q", got)
		}
		pass(25*time.Hour + time.Minute)
		mine, err := ownNames(t, folder)
		want := []string{"a-20000101T180000Z.backup", "a-20000102T000000Z.backup", "a-20000102T060000Z.backup"}
		if err != nil || !slices.Equal(mine, want) {
			t.Errorf("%q %v, not %q", mine, err, want)
		}
		for _, name := range others {
			if !slices.Contains(names(t, folder), name) {
				t.Errorf("%s went", name)
			}
		}
		if last := time.Unix(m.last.Load(), 0); !last.Equal(time.Now().Add(-time.Minute)) || m.lastBytes.Load() == 0 || m.failures.Load() != 0 {
			t.Errorf("last %v of %d bytes, %d failures", last, m.lastBytes.Load(), m.failures.Load())
		}
	})
}

// TestWhatFailsIsTriedAgain: no file appears of a backup that cannot be made, or not read back, and none goes meanwhile.
func TestWhatFailsIsTriedAgain(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		m := begin(t, folder, s, 1)
		pass(6*time.Hour + time.Second)
		before := names(t, folder)
		for _, broken := range []wrong{{fails: errors.New("no leader")}, {cut: true}} {
			s.wrong.Store(&broken)
			pass(6 * time.Hour) // one is due
			failures := m.failures.Load()
			pass(6 * time.Hour)
			if got := names(t, folder); !slices.Equal(got, before) || len(got) != 1 {
				t.Errorf("%+v: %q, not %q", broken, got, before)
			}
			if tries := m.failures.Load() - failures; tries < 60 || tries > 80 {
				t.Errorf("%d tries in six hours", tries)
			}
			if due := time.Unix(m.due.Load(), 0); time.Now().Before(due) {
				t.Error("it is not overdue")
			}
		}
		s.wrong.Store(&wrong{})
		pass(RetryAfter)
		if got := names(t, folder); len(got) != 1 || got[0] == before[0] {
			t.Errorf("%q, before it was %q", got, before)
		}
	})
}

// TestATimeThatPassedIsMadeUpFor: the server was off when its backup was due.
func TestATimeThatPassedIsMadeUpFor(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		old := fileName("a", time.Now().Add(-7*time.Hour), false)
		if err := os.WriteFile(filepath.Join(folder, old), []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		m := begin(t, folder, newStore(), 5)
		synctest.Wait()
		if m.last.Load() != time.Now().Add(-7*time.Hour).Unix() || m.lastBytes.Load() != 3 {
			t.Errorf("the newest is of %v", time.Unix(m.last.Load(), 0))
		}
		pass(time.Minute)
		if mine, _ := ownNames(t, folder); len(mine) != 2 {
			t.Errorf("%q", mine)
		}
	})
}

// TestAPlaceThatIsAwayAtTheStart is looked at until it answers: it may hold that a time has passed.
func TestAPlaceThatIsAwayAtTheStart(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "mounted")
	synctest.Test(t, func(t *testing.T) {
		m, err := New("a", Config{Schedule: "@every 6h", To: folder, Keep: 3}, newStore(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); m.Run(ctx) }()
		defer func() { cancel(); <-ended }()
		pass(RetryAfter - time.Minute)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		old := fileName("a", time.Now().Add(-7*time.Hour), false)
		if err := os.WriteFile(filepath.Join(folder, old), []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Minute)
		if mine, err := ownNames(t, folder); err != nil || len(mine) != 2 {
			t.Errorf("%q %v", mine, err)
		}
	})
}

// TestAPlaceThatIsAwayWhenTheFirstIsDue: the first backup is made as soon as the place answers, and is told as late until then.
func TestAPlaceThatIsAwayWhenTheFirstIsDue(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "mounted")
	synctest.Test(t, func(t *testing.T) {
		m, err := New("a", Config{Schedule: "@every 6h", To: folder, Keep: 3}, newStore(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); m.Run(ctx) }()
		defer func() { cancel(); <-ended }()
		pass(7 * time.Hour)
		if !m.State().Late(time.Now()) {
			t.Errorf("not late: %+v", m.State())
		}
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		pass(RetryAfter + startPause + time.Second)
		if mine, err := ownNames(t, folder); err != nil || len(mine) != 1 {
			t.Errorf("%q %v", mine, err)
		}
	})
}

// TestOneThatIsBeingMadeIsNotLate, but one that takes more than it may is.
func TestOneThatIsBeingMadeIsNotLate(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.wrong.Store(&wrong{slow: 3 * time.Hour})
		m := begin(t, folder, s, 3)
		pass(6*time.Hour + time.Hour)
		if m.State().Late(time.Now()) {
			t.Errorf("late while it is made: %+v", m.State())
		}
		pass(time.Hour + lateAfter + time.Minute)
		if !m.State().Late(time.Now()) {
			t.Errorf("not late after more than it may take: %+v", m.State())
		}
		pass(time.Hour)
		if m.State().Late(time.Now()) || m.State().Last.IsZero() {
			t.Errorf("late when it was made: %+v", m.State())
		}
	})
}

func TestList(t *testing.T) {
	folder := t.TempDir()
	config := Config{Schedule: "@daily", To: folder, Keep: 1}
	m, err := New("a", config, newStore(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if !m.once(t.Context()) {
		t.Fatal("no backup was made")
	}
	if err := os.WriteFile(filepath.Join(folder, "broken.backup"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := List(t.Context(), at(t, folder), nil)
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v %v", list, err)
	}
	if e := list[0]; e.File != "broken.backup" || e.Problem == "" || e.Bytes != 1 {
		t.Errorf("%+v", e)
	}
	if e := list[1]; e.Problem != "" || e.Objects != 1 || e.Made.IsZero() || e.Bytes != m.lastBytes.Load() {
		t.Errorf("%+v", e)
	}
	if _, err := List(t.Context(), at(t, filepath.Join(folder, "nowhere")), nil); err == nil {
		t.Error("a folder that is not there is listed")
	}
}

func TestFlags(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{}, ""},
		{Config{Schedule: "0 3 * * *", To: folder, Keep: 1}, ""},
		{Config{Schedule: "@daily", To: folder, Keep: KeepMax}, ""},
		{Config{Schedule: "@every 1m", To: folder, Keep: 1}, ""},
		{Config{Schedule: "@daily", Keep: 1}, "go together"},
		{Config{To: folder, Keep: 1}, "go together"},
		{Config{Schedule: "@daily", To: folder}, "1 to 1000"},
		{Config{Schedule: "@daily", To: folder, Keep: KeepMax + 1}, "1 to 1000"},
		{Config{Schedule: "daily", To: folder, Keep: 1}, "five fields"},
		{Config{Schedule: "0 0 30 2 *", To: folder, Keep: 1}, "no such day"},
		{Config{Schedule: "@every 10s", To: folder, Keep: 1}, "more than one a minute"},
		{Config{Schedule: "TZ=UTC 0 3 * * *", To: folder, Keep: 1}, "time zone"},
		{Config{Schedule: "@daily", To: filepath.Join(folder, "x"), Keep: 1}, "no such folder"},
	} {
		err := c.config.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, not %q", c.config, err, c.want)
		}
	}
}
