package replica

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/replica/raftdir"
)

func testLogger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError + 4}))
}

// openLone opens a lone voter on files below dir.
func openLone(t *testing.T, dir string, change func(*Config)) (*Replica, error) {
	t.Helper()
	storage, err := OpenFiles(t.Context(), dir, testLogger(t))
	if err != nil {
		return nil, err
	}
	cfg := Config{
		ID: "server-1", AdvertiseAddress: "server-1:1", ClusterID: "c1", Storage: storage,
		InitialServers: []Server{{"server-1", "server-1:1"}},
		Fatal:          func(err error) { t.Logf("fatal: %v", err) }, Logger: testLogger(t),
	}
	if change != nil {
		change(&cfg)
	}
	r, err := Open(t.Context(), cfg)
	if err != nil {
		return nil, errors.Join(err, storage.Close())
	}
	return r, nil
}

func waitLeader(t *testing.T, r *Replica) {
	t.Helper()
	if !leadsOrStops(t, r) {
		t.Fatal(r.Failed())
	}
}

// leadsOrStops waits until the replica leads, or has stopped itself.
func leadsOrStops(t *testing.T, r *Replica) bool {
	t.Helper()
	timeout := time.After(10 * time.Second)
	for {
		l, changed := r.Leadership()
		if l.Leader {
			return true
		}
		select {
		case <-changed:
		case <-r.Failing():
			return false
		case <-timeout:
			t.Fatalf("no leadership: %+v", r.Status())
		}
	}
}

// fill opens a replica, writes n keys, and closes it.
func fill(t *testing.T, dir string, n int) {
	t.Helper()
	r, err := openLone(t, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	waitLeader(t, r)
	for i := range n {
		writeKey(t, r, i)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

func writeKey(t *testing.T, r *Replica, i int) {
	t.Helper()
	results, err := r.Propose(t.Context(), &command.Entry{
		FormatVersion: command.FormatVersion,
		Commands: []command.Command{{Ops: []command.Op{{
			Kind: command.Put, Key: fmt.Sprintf("/k/%03d", i), Value: bytes.Repeat([]byte("findme-"), 20),
		}}}},
	})
	if err != nil || results[0].Code != command.OK {
		t.Fatalf("write %d: %v %v", i, results, err)
	}
}

func TestFoldersAreClosedToOtherUsers(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "snapshots"), 0o755); err != nil {
		t.Fatal(err)
	}
	storage, err := OpenFiles(t.Context(), dir, testLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	defer storage.Close()
	for _, sub := range []string{"raft", "snapshots", "state-marker"} {
		if info, err := os.Stat(filepath.Join(dir, sub)); err != nil || info.Mode().Perm() != dirMode {
			t.Errorf("%s: %v %v", sub, info.Mode(), err)
		}
	}
}

func TestLoneVoterKeepsItsState(t *testing.T) {
	dir := t.TempDir()
	r, err := openLone(t, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	waitLeader(t, r)
	writeKey(t, r, 1)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err = openLone(t, dir, nil); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	waitLeader(t, r)
	if _, ok := r.State().Root().Get("/k/001"); !ok {
		t.Error("the write is gone after a restart")
	}
}

func TestSnapshotAndRestart(t *testing.T) {
	dir := t.TempDir()
	r, err := openLone(t, dir, func(c *Config) { c.Timing.SnapshotBytes = 20_000 })
	if err != nil {
		t.Fatal(err)
	}
	waitLeader(t, r)
	for i := range 600 {
		writeKey(t, r, i)
	}
	if err := r.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.Status().SnapshotIndex; got == 0 {
		t.Error("no snapshot")
	}
	first, _ := r.log.FirstIndex()
	if last, _ := r.log.LastIndex(); last-first > 400 {
		t.Errorf("log still reaches from %d to %d", first, last)
	}
	_, want := r.State().Hash()
	r.Close()
	if r, err = openLone(t, dir, nil); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	waitLeader(t, r)
	if _, got := r.State().Hash(); got != want {
		t.Error("another state after the restart")
	}
}

// A flipped bit anywhere in the log's files is noticed at open, or lies where
// nothing reads: the state is never another one.
func TestFlippedBitsNeverChangeTheState(t *testing.T) {
	for name, used := range map[string]int{raftdir.Database: 32 << 10, logFile: 12 << 10} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			dir := t.TempDir()
			fill(t, dir, 12)
			flipBits(t, dir, filepath.Join(dir, "raft", name), used)
		})
	}
}

// logFile is the log of a small directory, in raft/.
const logFile = "log/0000000000000001.log"

// flipBits flips bits among the first used bytes of a file.
func flipBits(t *testing.T, dir, path string, used int) {
	want := openedHash(t, dir)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const stride = 307
	refused := 0
	for offset := 5; offset < min(used, len(data)); offset += stride {
		damaged := bytes.Clone(data)
		damaged[offset] ^= 0x10
		// A new file: an open that failed may still hold the lock of the old one.
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := openLone(t, dir, func(c *Config) { c.Timing.DiskStall = 300 * time.Millisecond })
		if err != nil {
			refused++
			continue
		}
		if !leadsOrStops(t, r) {
			refused++
		} else if _, got := r.State().Hash(); got != want {
			t.Errorf("flip at %d changed the state unnoticed", offset)
		}
		r.Close()
	}
	if refused == 0 {
		t.Error("no flip was noticed: the test misses what is stored")
	}
	t.Logf("%d of %d flips refused", refused, used/stride)
}

// openedHash returns the state hash that the directory gives.
func openedHash(t *testing.T, dir string) [16]byte {
	t.Helper()
	r, err := openLone(t, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	waitLeader(t, r)
	_, hash := r.State().Hash()
	return hash
}

func TestChangedValueIsRefused(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, 3)
	path := filepath.Join(dir, "raft", logFile)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(data, []byte("findme-"), []byte("findmf-")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openLone(t, dir, nil); !errors.Is(err, ErrCorrupt) {
		t.Errorf("open: %v", err)
	}
}

func TestEmptiedLogIsRefused(t *testing.T) {
	for _, lost := range []string{raftdir.Database, raftdir.Segments} {
		dir := t.TempDir()
		fill(t, dir, 3)
		if err := os.RemoveAll(filepath.Join(dir, "raft", lost)); err != nil {
			t.Fatal(err)
		}
		if _, err := openLone(t, dir, nil); !errors.Is(err, ErrStateLost) {
			t.Errorf("open without %s: %v", lost, err)
		}
	}
}

// A start that ended between writing the term and the first entry is taken up.
func TestInterruptedFoundingGoesOn(t *testing.T) {
	disk := NewMemory()
	stable := disk.Open().terms(&diskGuard{fail: func(error) {}, limit: time.Minute})
	if err := stable.SetUint64([]byte("CurrentTerm"), 1); err != nil {
		t.Fatal(err)
	}
	r, err := Open(t.Context(), Config{
		ID: "server-1", AdvertiseAddress: "server-1:1", Storage: disk.Open(),
		InitialServers: []Server{{"server-1", "server-1:1"}},
		Fatal:          func(err error) { t.Error(err) }, Logger: testLogger(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	waitLeader(t, r)
}

func TestCutLogGivesAnError(t *testing.T) {
	for keep, name := range map[int64]string{10: raftdir.Database, 4096: raftdir.Database, 10_000: raftdir.Database, 20: logFile, 4100: logFile, 9000: logFile} {
		t.Run(fmt.Sprint(keep), func(t *testing.T) {
			dir := t.TempDir()
			fill(t, dir, 100)
			if err := os.Truncate(filepath.Join(dir, "raft", name), keep); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			if r, err := openLone(t, dir, nil); err == nil {
				r.Close()
				t.Error("a cut log was opened")
			}
			if took := time.Since(start); took > openLimit+time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// TestLargeDataMayTakeLonger to be opened: a slow disk is no damage.
func TestLargeDataMayTakeLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func() error { time.Sleep(time.Minute); return nil }
		if err := guarded(t.Context(), 40<<20, slow); err != nil {
			t.Errorf("40 MiB in a minute: %v", err)
		}
		start := time.Now()
		if err := guarded(t.Context(), 1<<20, slow); !errors.Is(err, ErrOpenTimeout) || time.Since(start) > openLimit+2*time.Second {
			t.Errorf("1 MiB: %v after %v", err, time.Since(start))
		}
		time.Sleep(time.Minute) // what was given up on ends
	})
}

func TestDataOfOthersIsRefused(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, 1)
	if _, err := openLone(t, dir, func(c *Config) { c.ClusterID = "c2" }); !errors.Is(err, ErrForeignData) {
		t.Errorf("other cluster: %v", err)
	}
	if _, err := openLone(t, dir, func(c *Config) { c.ID = "server-2" }); !errors.Is(err, ErrForeignData) {
		t.Errorf("other server: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "state-marker", "marker.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := openLone(t, dir, func(c *Config) { c.ClusterID = "c2" }); !errors.Is(err, ErrForeignData) {
		t.Errorf("other cluster without a marker: %v", err)
	}
	r, err := openLone(t, dir, nil)
	if err != nil {
		t.Fatalf("lost marker: %v", err)
	}
	r.Close()
	if _, err := os.Stat(filepath.Join(dir, "state-marker", "marker.json")); err != nil {
		t.Errorf("marker not written again: %v", err)
	}
}

func TestDamagedMarkerIsRefused(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, 1)
	path := filepath.Join(dir, "state-marker", "marker.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(data, []byte("server-1"), []byte("server-3"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openLone(t, dir, nil); !errors.Is(err, ErrCorrupt) {
		t.Errorf("open: %v", err)
	}
}

func TestSecondProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	r, err := openLone(t, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if second, err := openLone(t, dir, nil); err == nil {
		second.Close()
		t.Error("the same data directory was opened twice")
	}
}

// Without its newest root the database would show the state before the last write.
func TestDamagedRootIsRefused(t *testing.T) {
	for root := range 2 {
		dir := t.TempDir()
		fill(t, dir, 3)
		path := filepath.Join(dir, "raft", "raft.db")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		data[root*os.Getpagesize()+40] ^= 1
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openLone(t, dir, nil); !errors.Is(err, ErrCorrupt) {
			t.Errorf("root %d: %v", root, err)
		}
	}
}

// An older copy of the log is whole, and yet this server has forgotten.
func TestOldCopyOfTheLogIsRefused(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, 3)
	path := filepath.Join(dir, "raft", logFile)
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, dir, 3)
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openLone(t, dir, nil); !errors.Is(err, ErrStateLost) {
		t.Errorf("open: %v", err)
	}
	// Under a new id it begins anew: what it was does not bind it.
	if _, err := openLone(t, dir, func(c *Config) { c.ID = "server-2" }); !errors.Is(err, ErrForeignData) {
		t.Errorf("under another id: %v", err)
	}
}

// Space that a start found taken by an unfinished snapshot is given back.
func TestUnfinishedSnapshotsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	unfinished := filepath.Join(dir, "snapshots", "2-10-1.tmp")
	if err := os.MkdirAll(unfinished, 0o700); err != nil {
		t.Fatal(err)
	}
	fill(t, dir, 1)
	if _, err := os.Stat(unfinished); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
}
