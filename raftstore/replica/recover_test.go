package replica

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/replica/birth"
	"github.com/setpoint-io/setpoint/raftstore/watch"
)

// testBegin is when the next lives of the tests begin.
var testBegin = time.Unix(1_800_000_000, 0)

func filesAt(t *testing.T, dir string) Files { return Files{Dir: dir, Logger: testLogger(t)} }

func examined(t *testing.T, dir string) *Stored {
	t.Helper()
	stored, err := ExamineFiles(t.Context(), dir, testLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func nextLife(s *Stored) *NextLife {
	return &NextLife{
		ServerID: "server-1", Servers: []ServerStatus{{Server: Server{"server-1", "server-1:1"}, Voter: true}}, Root: s.Root, ClusterID: "c1",
		Life: "life-2", FormerLife: s.Root.Life, LastIndex: s.LastIndex, LastTerm: s.LastTerm, Begins: testBegin,
	}
}

func TestExamineSeesWhatTheReplicaHad(t *testing.T) {
	for name, snapshotBytes := range map[string]int64{"log alone": 0, "snapshot and log": 5_000} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r, err := openLone(t, dir, func(c *Config) { c.Timing.SnapshotBytes = snapshotBytes })
			if err != nil {
				t.Fatal(err)
			}
			waitLeader(t, r)
			for i := range 100 {
				writeKey(t, r, i)
			}
			if snapshotBytes > 0 {
				if err := r.Snapshot(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			writeKey(t, r, 200)
			revision, hash := r.State().Hash()
			term, last := r.Term(), r.Status().LastIndex
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			s := examined(t, dir)
			if s.Root.Revision != revision || s.Root.Hash() != hash || s.Term != term || s.LastTerm != term || s.LastIndex != last {
				t.Errorf("found %+v, want revision %d, term %d, last index %d", s, revision, term, last)
			}
			if s.ServerID != "server-1" || len(s.Servers) != 1 || s.Servers[0].ID != "server-1" || !s.Servers[0].Voter {
				t.Errorf("found server %q and members %v", s.ServerID, s.Servers)
			}
		})
	}
}

func TestExamineRefusesWhatIsNotWhole(t *testing.T) {
	empty := t.TempDir()
	if _, err := ExamineFiles(t.Context(), empty, testLogger(t)); !errors.Is(err, ErrNoState) {
		t.Errorf("empty: %v", err)
	}
	lost := t.TempDir()
	fill(t, lost, 3)
	if err := os.RemoveAll(filepath.Join(lost, "raft")); err != nil {
		t.Fatal(err)
	}
	if _, err := ExamineFiles(t.Context(), lost, testLogger(t)); !errors.Is(err, ErrStateLost) {
		t.Errorf("without its log: %v", err)
	}
	flipped := t.TempDir()
	fill(t, flipped, 30)
	path := filepath.Join(flipped, "raft", logFile)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.ReplaceAll(data, []byte("findme-"), []byte("FindMe-"))
	if err := os.WriteFile(path, data, fileMode); err != nil {
		t.Fatal(err)
	}
	if _, err := ExamineFiles(t.Context(), flipped, testLogger(t)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("flipped: %v", err)
	}
}

// reborn opens a directory that a next life was written to and checks what every
// client of the former life must notice.
func reborn(t *testing.T, dir string, before *Stored) {
	t.Helper()
	r, err := openLone(t, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	waitLeader(t, r)
	root := r.State().Root()
	if root.Revision != nextLife(before).Revision() || root.Hash() != before.Root.Hash() || root.ClusterID != "c1" {
		t.Errorf("begins at revision %d with hash %x in cluster %q", root.Revision, root.Hash(), root.ClusterID)
	}
	if _, err := r.State().Ring().Watch("", before.Root.Revision); !errors.Is(err, watch.ErrCompacted) {
		t.Errorf("a watch of the former life goes on: %v", err)
	}
	results, err := r.Propose(t.Context(), &command.Entry{FormatVersion: command.FormatVersion, Commands: []command.Command{
		{Fence: before.Term, Ops: []command.Op{{Kind: command.Put, Key: "/fenced"}}},
		{Session: 1, Sequence: 1, Ops: []command.Op{{Kind: command.Put, Key: "/session"}}},
	}})
	if err != nil || results[0].Code != command.FenceStale || results[1].Code != command.SessionUnknown {
		t.Errorf("old fence and old session: %v %v", results, err)
	}
	writeKey(t, r, 500)
}

func TestFoundThenRunAndRestart(t *testing.T) {
	source, dir := t.TempDir(), t.TempDir()
	fill(t, source, 20)
	s := examined(t, source)
	if err := nextLife(s).Found(t.Context(), filesAt(t, dir)); err != nil {
		t.Fatal(err)
	}
	if err := nextLife(s).Found(t.Context(), filesAt(t, dir)); !errors.Is(err, ErrHasState) {
		t.Errorf("a second time: %v", err)
	}
	reborn(t, dir, s)
	again := examined(t, dir)
	if again.LastTerm <= s.Term+birth.TermGap || again.LastIndex <= s.LastIndex+birth.IndexGap {
		t.Errorf("runs on in term %d at %d", again.LastTerm, again.LastIndex)
	}
	r, err := openLone(t, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	waitLeader(t, r)
	if _, ok := r.State().Root().Get("/k/500"); !ok {
		t.Error("a write is gone after a restart")
	}
}

func TestReplaceKeepsTheObjects(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, 50)
	s := examined(t, dir)
	if err := nextLife(s).Replace(t.Context(), filesAt(t, dir)); err != nil {
		t.Fatal(err)
	}
	if err := nextLife(s).Replace(t.Context(), filesAt(t, dir)); !errors.Is(err, ErrHasState) {
		t.Errorf("what was examined is gone, but: %v", err)
	}
	reborn(t, dir, s)
}

// A crash after the snapshot and before the log was deleted.
func TestReplaceInterruptedBeforeTheLogIsDeleted(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, 50)
	s := examined(t, dir)
	err := withDisk(t.Context(), filesAt(t, dir), func(storage *Storage) error { return nextLife(s).write(newExaminer(storage)) })
	if err != nil {
		t.Fatal(err)
	}
	if again := examined(t, dir); again.Root.Revision != nextLife(s).Revision() {
		t.Errorf("found revision %d", again.Root.Revision)
	}
	reborn(t, dir, s)
}

// A release that does not know the level must say so, and must not take an older
// snapshot, nor call the data damaged.
func TestSnapshotOfANewerLevel(t *testing.T) {
	dir := t.TempDir()
	level := func(n uint64) func(*Config) { return func(c *Config) { c.FeatureLevel = n } }
	r, err := openLone(t, dir, level(2))
	if err != nil {
		t.Fatal(err)
	}
	waitLeader(t, r)
	writeKey(t, r, 1)
	if err := r.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = r.Propose(t.Context(), &command.Entry{FormatVersion: command.FormatVersion, Commands: []command.Command{
		{Ops: []command.Op{{Kind: command.SetFeatureLevel, Revision: 2}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := openLone(t, dir, level(1)); !errors.Is(err, ErrFeatureLevel) || errors.Is(err, ErrCorrupt) {
		t.Errorf("the older release: %v", err)
	}
	if r, err = openLone(t, dir, level(2)); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, ok := r.State().Root().Get("/k/001"); !ok {
		t.Error("the data is gone")
	}
}
