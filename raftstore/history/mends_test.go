package history_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/history"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
	"github.com/setpoint-io/setpoint/raftstore/watch"
)

// snapshotOf is what the leader would send.
func snapshotOf(t *testing.T, root *state.Snapshot) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	if _, err := root.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return &b
}

// TestASnapshotArrives: a server that runs gets a snapshot with more than it has seen: that is a hole, and history goes on behind it.
func TestASnapshotArrives(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	leader, store := raftstoretest.NewLocal(state.Options{RingBytes: 20 << 10}), raftstoretest.NewLocal(state.Options{RingBytes: 1 << 20})
	for range 50 {
		write(t, store, r, 10, 100)
	}
	before := store.Root().Revision
	h, _ := openHistory(t, store, t.TempDir(), nil)
	if _, err := h.At(t.Context(), key(0), before); err != nil { // it has all
		t.Fatal(err)
	}
	for range 500 {
		write(t, leader, r, 10, 1000)
	}
	if err := store.State().Restore(snapshotOf(t, leader.Root().Snapshot())); err != nil {
		t.Fatal(err)
	}
	if _, err := h.At(t.Context(), key(0), store.Root().Revision-1); err != nil {
		t.Fatal(err)
	}
	if s := h.Status(); len(s.Holes) != 1 || s.Holes[0].After != before || s.Oldest != 0 || s.Newest != store.Root().Revision {
		t.Errorf("%+v", s)
	}
}

// TestABlockThatCannotBeWritten: the first block of another file does not fit on the disk: the oldest file makes room, once, and what
// could not be written is a hole. Other errors take nothing from what is there.
func TestABlockThatCannotBeWritten(t *testing.T) {
	full, broken := func(path string) error { return os.Symlink("/dev/full", path) }, func(path string) error { return os.Mkdir(path, 0o700) }
	for name, c := range map[string]struct {
		spoil   func(path string) error
		changes int
		gives   bool
	}{
		"full": {full, 300, true}, "full, one file": {full, 60, false}, "broken": {broken, 300, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(13, 14))
			store, dir := raftstoretest.NewLocal(state.Options{RingBytes: 1 << 30}), t.TempDir()
			small := func(c *history.Config) { c.FileBytes = 1 }
			h, end := openHistory(t, store, dir, small)
			for range c.changes {
				write(t, store, r, 50, 5000)
			}
			same(t, h, store, key(0), store.Root().Revision-1)
			end()
			begin := store.Root().Revision
			h, _ = openHistory(t, store, dir, small)
			files, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil || (len(files) == 1) == (c.changes == 300) {
				t.Fatal(files, err)
			}
			for i := range 300 {
				if err := c.spoil(filepath.Join(dir, fmt.Sprintf("%020d.history", begin+uint64(i)))); err != nil {
					t.Fatal(err)
				}
			}
			for range 300 {
				write(t, store, r, 50, 5000)
			}
			same(t, h, store, key(0), store.Root().Revision)
			s := h.Status()
			if missing := s.Trouble != "" && len(s.Holes) > 0; missing == c.gives || (s.Oldest > 0) != c.gives {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestRoom: a disk that is crowded for a moment costs the oldest file, not all of them.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var crowded atomic.Bool
		r := rand.New(rand.NewPCG(15, 16))
		store, dir := raftstoretest.NewLocal(state.Options{RingBytes: 1 << 30}), t.TempDir()
		_, end := openHistory(t, store, dir, func(c *history.Config) { c.Crowded, c.FileBytes = crowded.Load, 256<<10 })
		defer end()
		for range 1000 {
			write(t, store, r, 50, 5000)
		}
		synctest.Wait()
		count := func() int {
			files, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil {
				t.Fatal(err)
			}
			return len(files)
		}
		before := count()
		crowded.Store(true)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		crowded.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if after := count(); before < 5 || before-after < 1 || before-after > 2 {
			t.Errorf("%d files, then %d", before, after)
		}
	})
}

// reborn is a store with the same objects in another life.
func reborn(t *testing.T, store *raftstoretest.Local, life string, revision uint64) *raftstoretest.Local {
	t.Helper()
	snapshot, ok := store.Root().Rebirth(state.Birth{Life: life, Revision: revision})
	if !ok {
		t.Fatal("no rebirth")
	}
	next := raftstoretest.NewLocal(state.Options{RingBytes: 1 << 30})
	if err := next.State().Restore(snapshotOf(t, snapshot)); err != nil {
		t.Fatal(err)
	}
	return next
}

// levelled is a store whose life has a name.
func levelled(t *testing.T) *raftstoretest.Local {
	t.Helper()
	return reborn(t, founded(t), "one", 10)
}

func founded(t *testing.T) *raftstoretest.Local {
	t.Helper()
	store := raftstoretest.NewLocal(state.Options{RingBytes: 1 << 30})
	for _, op := range []command.Op{{Kind: command.Put, Key: key(0), UID: "u", Value: []byte("x")}} {
		if _, err := store.Propose(t.Context(), command.Command{Ops: []command.Op{op}}); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// TestAnotherLife: files of another life, even with revisions that the store has not reached, are not taken for its own.
func TestAnotherLife(t *testing.T) {
	r, dir := rand.New(rand.NewPCG(17, 18)), t.TempDir()
	store := levelled(t)
	if store.Root().Life != "one" {
		t.Fatalf("life %q", store.Root().Life)
	}
	h, end := openHistory(t, store, dir, nil)
	for range 300 {
		write(t, store, r, 20, 5000)
	}
	same(t, h, store, "/core/pods/", store.Root().Revision-100)
	end()
	next := reborn(t, founded(t), "two", 20)
	for range 50 {
		write(t, next, r, 20, 5000)
	}
	h, _ = openHistory(t, next, dir, nil)
	for revision := uint64(20); revision <= next.Root().Revision; revision += 7 {
		same(t, h, next, "/core/pods/", revision)
	}
	if s := h.Status(); s.Newest != next.Root().Revision || len(s.Holes) > 0 {
		t.Errorf("%+v", s)
	}
}

// TestReadersAtOnce: many who read the same blocks. It is for the race detector.
func TestReadersAtOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(19, 20))
	store := raftstoretest.NewLocal(state.Options{RingBytes: 1 << 30})
	h, _ := openHistory(t, store, t.TempDir(), nil)
	for range 400 {
		write(t, store, r, 20, 5000)
	}
	errs := make(chan error)
	for i := range 8 {
		go func() {
			_, err := h.At(t.Context(), key(i), 100)
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// timed writes a change that the leader took at a time, zero: unknown.
func timed(t *testing.T, s *state.State, index uint64, nanos int64) {
	t.Helper()
	c := command.Command{Ops: []command.Op{{Kind: command.Put, Key: key(int(index) % 5), UID: fmt.Sprint("u", index), Value: []byte{byte(index)}}}}
	s.Apply(index, 1, &command.Entry{FormatVersion: command.FormatVersion, Term: 1, Commands: []command.Command{c}, UnixNanos: nanos})
}

// source is a state without a log.
type source struct{ *state.State }

func (s source) Watch(prefix string, after uint64) (*watch.Watcher, error) {
	return s.Ring().Watch(prefix, after)
}
func (s source) Bounds() (compacted, last uint64) { return s.Ring().Bounds() }

// TestTimes: a time among changes whose times are unknown is not guessed; a clock that was a year ahead does not decide for that year.
func TestTimes(t *testing.T) {
	hour := func(n int) time.Time { return time.Unix(1_700_000_000, 0).Add(time.Duration(n) * time.Hour) }
	nanos := func(n int) int64 { return hour(n).UnixNano() }
	s := state.New(state.Options{RingBytes: 1 << 30})
	for i, at := range []int64{0, 0, nanos(1), nanos(2), 0, nanos(4), nanos(9000), nanos(5), nanos(6)} {
		timed(t, s, uint64(i+1), at)
	}
	h, _ := openHistory(t, source{s}, t.TempDir(), nil)
	for _, c := range []struct {
		at       time.Time
		revision uint64
		err      error
	}{
		{hour(-5), 0, history.ErrTooOld}, {hour(1), 3, nil}, {hour(2), 0, history.ErrHole}, {hour(3), 0, history.ErrHole}, {hour(4), 6, nil},
	} {
		if got, err := h.RevisionAt(t.Context(), c.at); got != c.revision || !errors.Is(err, c.err) {
			t.Errorf("%s: %d, %v; want %d, %v", c.at, got, err, c.revision, c.err)
		}
	}
	changes, _, _, err := h.Changes(context.Background(), key(4), 0, 10)
	if err != nil || len(changes) == 0 || !changes[len(changes)-1].Time.Equal(hour(6)) {
		t.Errorf("after a clock that was ahead: %+v, %v", changes, err)
	}
}

// TestLargeChanges: the values of one answer are bounded, not their number alone.
func TestLargeChanges(t *testing.T) {
	store := raftstoretest.NewLocal(state.Options{RingBytes: 1 << 30})
	h, _ := openHistory(t, store, t.TempDir(), nil)
	value := bytes.Repeat([]byte("compressible "), 80_000)
	for i := range 50 {
		op := command.Op{Kind: command.Put, Key: key(0), UID: "u", Value: append(value, byte(i))}
		if _, err := store.Propose(t.Context(), command.Command{Ops: []command.Op{op}}); err != nil {
			t.Fatal(err)
		}
	}
	changes, _, more, err := h.Changes(t.Context(), key(0), 0, 1000)
	sum := 0
	for _, c := range changes {
		if c.Before != nil {
			sum += len(c.Before.Value)
		}
	}
	if err != nil || !more || len(changes) < 10 || sum > 32<<20 || changes[len(changes)-1].Revision != 50 {
		t.Errorf("%d changes of %d bytes, more: %v, %v", len(changes), sum, more, err)
	}
}
