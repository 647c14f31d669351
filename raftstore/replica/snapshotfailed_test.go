package replica

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
)

var errNoRoom = errors.New("no room")

// failingSnapshots is a disk on which a snapshot fails: while it is written, or at its end.
type failingSnapshots struct {
	raft.SnapshotStore
	atEnd bool
}

func (f *failingSnapshots) Create(v raft.SnapshotVersion, index, term uint64, c raft.Configuration, at uint64, trans raft.Transport) (raft.SnapshotSink, error) {
	sink, err := f.SnapshotStore.Create(v, index, term, c, at, trans)
	return &failingSink{SnapshotSink: sink, atEnd: f.atEnd}, err
}

type failingSink struct {
	raft.SnapshotSink
	atEnd bool
}

func (f *failingSink) Write(b []byte) (int, error) {
	if f.atEnd {
		return f.SnapshotSink.Write(b)
	}
	n, err := f.SnapshotSink.Write(b[:len(b)/2])
	return n, errors.Join(errNoRoom, err)
}

func (f *failingSink) Close() error {
	if !f.atEnd {
		return f.SnapshotSink.Close()
	}
	return errors.Join(errNoRoom, f.Cancel())
}

// TestAFailedSnapshotKeepsTheLog: it counts as none, the log behind it stays and goes on asking for one, and the state is
// there after a restart.
func TestAFailedSnapshotKeepsTheLog(t *testing.T) {
	for name, atEnd := range map[string]bool{"half written": false, "not finished": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r, err := openLone(t, dir, func(c *Config) {
				c.Timing.SnapshotBytes = 1 << 40
				c.Storage.snapshots = &failingSnapshots{c.Storage.snapshots, atEnd}
			})
			if err != nil {
				t.Fatal(err)
			}
			waitLeader(t, r)
			for i := range 3 * trailingEntriesMin {
				writeKey(t, r, i)
			}
			_, want := r.State().Hash()
			r.log.count.Store(1) // few entries stay behind a snapshot
			r.log.grown.Store(1 << 41)
			if err := r.Snapshot(t.Context()); err == nil { // raft keeps the text of an error only
				t.Error("a snapshot that failed counts as taken")
			}
			if first, err := r.log.FirstIndex(); err != nil || first != 1 || r.log.grown.Load() < 1<<41 {
				t.Errorf("the log begins at %d (%v) and has grown by %d", first, err, r.log.grown.Load())
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if r, err = openLone(t, dir, nil); err != nil {
				t.Fatalf("after the restart: %v", err)
			}
			defer r.Close()
			waitLeader(t, r)
			if _, got := r.State().Hash(); got != want {
				t.Error("another state after the restart")
			}
		})
	}
}
