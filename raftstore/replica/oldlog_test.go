package replica

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/replica/raftdir"
	"github.com/setpoint-io/setpoint/raftstore/replica/segments"
)

// makeOld makes a directory what a release without segments would have left: its log is in the database.
func makeOld(t *testing.T, dir string) {
	t.Helper()
	bolt, err := raftboltdb.NewBoltStore(filepath.Join(dir, raftDir, raftdir.Database))
	if err != nil {
		t.Fatal(err)
	}
	defer bolt.Close()
	path := filepath.Join(dir, raftDir, raftdir.Segments)
	log, err := segments.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	first, _ := log.FirstIndex()
	last, _ := log.LastIndex()
	for i := first; i <= last; i++ {
		var entry raft.Log
		if err := log.GetLog(i, &entry); err != nil {
			t.Fatal(err)
		}
		if err := bolt.StoreLog(&entry); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// storedIn opens the directory and says where its log is and what its state is.
func storedIn(t *testing.T, dir string) (inSegments bool, hash [16]byte) {
	t.Helper()
	r, err := openLone(t, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	waitLeader(t, r)
	_, hash = r.State().Hash()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return exists(filepath.Join(dir, raftDir, raftdir.Segments)), hash
}

// TestAnOldLogMovesOnceNoOldServerIsLeft, and loses nothing by it.
func TestAnOldLogMovesOnceNoOldServerIsLeft(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, 50)
	want := openedHash(t, dir)
	makeOld(t, dir)
	for range 2 {
		if moved, got := storedIn(t, dir); moved || got != want {
			t.Fatalf("moved %v, state as before %v", moved, got == want)
		}
	}
	r, err := openLone(t, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	waitLeader(t, r)
	raise(t, r, SegmentsLevel)
	_, want = r.State().Hash()
	before := r.Term()
	if err := r.Close(); err != nil { // the last look of followWatermark lets it move
		t.Fatal(err)
	}
	for range 2 {
		if moved, got := storedIn(t, dir); !moved || got != want {
			t.Fatalf("moved %v, state as before %v", moved, got == want)
		}
	}
	if r, err = openLone(t, dir, nil); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if waitLeader(t, r); r.Term() != before+3 { // each start is an election
		t.Errorf("term %d before, %d after three starts", before, r.Term())
	}
	if info, err := os.Stat(filepath.Join(dir, raftDir, raftdir.Database)); err != nil || info.Size() > 64<<10 {
		t.Errorf("the database: %+v, %v", info, err)
	}
}

func raise(t *testing.T, r *Replica, level uint64) {
	t.Helper()
	_, err := r.Propose(t.Context(), &command.Entry{FormatVersion: command.FormatVersion, Commands: []command.Command{
		{Ops: []command.Op{{Kind: command.SetFeatureLevel, Revision: level, Value: []byte("a life")}}},
	}})
	if err != nil || r.State().Root().FeatureLevel != level {
		t.Fatalf("level %d: %v", r.State().Root().FeatureLevel, err)
	}
}
