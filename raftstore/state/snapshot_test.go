package state_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/record"
	"github.com/setpoint-io/setpoint/raftstore/state"
	"github.com/setpoint-io/setpoint/raftstore/watch"
)

var update = flag.Bool("update", false, "rewrite the golden files; the format must never change, so only for a new version")

func snapshotOf(t testing.TB, s *state.State) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := s.Snapshot().WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("wrote %d of %d bytes: %v", n, b.Len(), err)
	}
	return b.Bytes()
}

func restored(t testing.TB, snapshot []byte) *state.State {
	t.Helper()
	s := state.New(state.Options{})
	// One byte at a time: the reader may be a network stream.
	if err := s.Restore(iotest.OneByteReader(bytes.NewReader(snapshot))); err != nil {
		t.Fatal(err)
	}
	return s
}

// randomLog is a state after a random history, with open sessions.
func randomLog(seed uint64, entries int) (*log, *rand.Rand) {
	r := rand.New(rand.NewPCG(seed, 5))
	l := newLog(state.Options{})
	l.apply(openSession(), openSession(), openSession())
	l.op(command.Op{Kind: command.SetClusterID, Value: []byte("c-1")})
	if seed%2 == 1 {
		l.op(command.Op{Kind: command.SetFeatureLevel, Revision: 2, Value: []byte("life-1")})
	}
	for range entries {
		l.apply(randomCommand(r, l.Root().Revision))
	}
	return l, r
}

// TestRestoreAndTailEqualsLive is the promise of snapshots. The tail has retries
// of commands from before the snapshot, so sessions count.
func TestRestoreAndTailEqualsLive(t *testing.T) {
	for seed := range uint64(30) {
		live, r := randomLog(seed, int(seed*10))
		copied := &log{State: restored(t, snapshotOf(t, live.State)), index: live.index, term: live.term}
		wantSame(t, live.State, copied.State)
		for range 100 {
			c := randomCommand(r, live.Root().Revision)
			if diff := cmp.Diff(live.apply(c), copied.apply(c)); diff != "" {
				t.Fatalf("seed %d: %s", seed, diff)
			}
		}
		wantSame(t, live.State, copied.State)
		wantSameHistory(t, live.State, copied.State)
		if !bytes.Equal(snapshotOf(t, live.State), snapshotOf(t, copied.State)) {
			t.Fatalf("seed %d: snapshots of equal states differ", seed)
		}
	}
}

func wantSameHistory(t *testing.T, live, copied *state.State) {
	t.Helper()
	compacted, _ := copied.Ring().Bounds()
	want, err := live.Ring().Since(compacted)
	if err != nil {
		t.Fatal(err)
	}
	got, err := copied.Ring().Since(compacted)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(record.Record{})); diff != "" {
		t.Fatal(diff)
	}
}

// TestSnapshotIsOfItsMoment writes a snapshot late: what was applied meanwhile
// must not be in it.
func TestSnapshotIsOfItsMoment(t *testing.T) {
	l, r := randomLog(1, 100)
	want := snapshotOf(t, l.State)
	snapshot := l.Snapshot()
	for range 300 {
		l.apply(randomCommand(r, l.Root().Revision))
	}
	var late bytes.Buffer
	if _, err := snapshot.WriteTo(&late); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, late.Bytes()) {
		t.Error("later entries got into the snapshot")
	}
}

func TestRestoredHistoryResumesWatches(t *testing.T) {
	live := newLog(state.Options{})
	for i := range 5000 {
		live.mustOp(t, command.Op{Kind: command.Put, Key: fmt.Sprintf("pods/%d", i%50), Value: make([]byte, 2000)})
	}
	s := restored(t, snapshotOf(t, live.State))
	compacted, last := s.Ring().Bounds()
	const averageBytes = 2000*2 + 200
	if held := last - compacted; last != 5000 || held < 8<<20/averageBytes-50 || held > 8<<20/averageBytes+50 {
		t.Errorf("history from %d to %d", compacted, last)
	}
	if _, err := s.Ring().Watch("", compacted-1); !errors.Is(err, watch.ErrCompacted) {
		t.Errorf("watch from before: %v", err)
	}
	w, err := s.Ring().Watch("pods/", last-1)
	if err != nil {
		t.Fatal(err)
	}
	events, err := w.Next(t.Context())
	if err != nil || len(events) != 1 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	// The event shares the record of the root, so it is decoded once.
	if rec, _ := s.Root().Get(events[0].Key); rec != events[0].Record {
		t.Error("event and root hold different copies")
	}
}

func TestWatcherGoesOnAcrossRestore(t *testing.T) {
	live, lagging := newLog(state.Options{}), newLog(state.Options{})
	for i := range 10 {
		op := put(fmt.Sprint(i), "x")
		live.mustOp(t, op)
		if i < 4 {
			lagging.mustOp(t, op)
		}
	}
	w, err := lagging.Ring().Watch("", 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := lagging.Restore(bytes.NewReader(snapshotOf(t, live.State))); err != nil {
		t.Fatal(err)
	}
	events, err := w.Next(t.Context())
	if err != nil || len(events) != 8 || events[0].Revision != 3 || events[7].Revision != 10 {
		t.Errorf("%d events, %v", len(events), err)
	}
}

func TestDamagedSnapshotIsRefused(t *testing.T) {
	l, _ := randomLog(3, 60)
	good := snapshotOf(t, l.State)
	target, _ := randomLog(4, 20)
	before := snapshotOf(t, target.State)
	refuse := func(what string, bad []byte) {
		if err := target.Restore(bytes.NewReader(bad)); !errors.Is(err, state.ErrCorruptSnapshot) {
			t.Fatalf("%s: %v", what, err)
		}
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1 << (i % 8)
		refuse(fmt.Sprintf("byte %d of %d flipped", i, len(good)), bad)
		refuse(fmt.Sprintf("cut to %d of %d bytes", i, len(good)), good[:i])
	}
	refuse("trailing byte", append(bytes.Clone(good), 0))
	refuse("twice", append(bytes.Clone(good), good...))
	if !bytes.Equal(before, snapshotOf(t, target.State)) {
		t.Error("a refused snapshot changed the state")
	}
}

// TestForgedRecordIsRefused changes a record and makes all checksums right again:
// the state hash still tells.
func TestForgedRecordIsRefused(t *testing.T) {
	l := newLog(state.Options{})
	l.mustOp(t, put("a", "honest"))
	l.mustOp(t, put("b", "1"))
	forged := withChecksums(bytes.Replace(snapshotOf(t, l.State), []byte("honest"), []byte("forged"), 1))
	if err := state.New(state.Options{}).Restore(bytes.NewReader(forged)); !errors.Is(err, state.ErrCorruptSnapshot) {
		t.Errorf("got %v", err)
	}
}

// TestForgedSnapshotsAreRefused, although all their checksums are right: ids of sessions ascend, and none is newer than the last that was
// given out, and a result is of one of them.
func TestForgedSnapshotsAreRefused(t *testing.T) {
	l := newLog(state.Options{})
	l.apply(openSession(), openSession(), openSession())
	l.apply(inSession(2, 1, put("a", "1")))
	whole := snapshotOf(t, l.State)
	header := []byte{1, 1, 2, 0, 0, 3, 0}         // format, revision, index, level, no id, the last session, where the history begins
	sessions := []byte{1, 1, 0, 2, 2, 1, 3, 1, 0} // id, when it was used, its highest sequence
	for name, c := range map[string]struct{ old, forged []byte }{
		"sessions out of order":   {sessions, []byte{2, 2, 1, 1, 1, 0, 3, 1, 0}},
		"a session twice":         {sessions, []byte{1, 1, 0, 2, 2, 1, 2, 1, 0}},
		"a session of the future": {sessions, []byte{1, 1, 0, 2, 2, 1, 4, 1, 0}},
		"a result of the future":  {sessions, []byte{1, 1, 0, 2, 2, 0, 3, 1, 0}},
		"an older format":         {header, []byte{0, 1, 2, 0, 0, 3, 0}},
	} {
		if bytes.Count(whole, c.old) != 1 {
			t.Fatalf("%q is not once in %q", c.old, whole)
		}
		bad := withChecksums(bytes.Replace(whole, c.old, c.forged, 1))
		if err := state.New(state.Options{}).Restore(bytes.NewReader(bad)); !errors.Is(err, state.ErrCorruptSnapshot) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAHistoryOfTheFutureIsRefused, also if it is empty: watches would wait for what has been.
func TestAHistoryOfTheFutureIsRefused(t *testing.T) {
	l := newLog(state.Options{})
	l.apply(openSession())
	whole, header := snapshotOf(t, l.State), []byte{1, 0, 1, 0, 0, 1, 0}
	if bytes.Count(whole, header) != 1 {
		t.Fatalf("%q is not once in %q", header, whole)
	}
	bad := withChecksums(bytes.Replace(whole, header, []byte{1, 0, 1, 0, 0, 1, 1}, 1))
	if err := state.New(state.Options{}).Restore(bytes.NewReader(bad)); !errors.Is(err, state.ErrCorruptSnapshot) {
		t.Error(err)
	}
}

func TestRestoreForgetsThePast(t *testing.T) {
	l, other := newLog(state.Options{}), newLog(state.Options{})
	for i := range 3 {
		l.mustOp(t, put("a", fmt.Sprint("mine ", i)))
		other.mustOp(t, put("a", fmt.Sprint("other ", i)))
	}
	if _, err := l.RootAt(2); err != nil {
		t.Fatal(err)
	}
	if err := l.Restore(bytes.NewReader(snapshotOf(t, other.State))); err != nil {
		t.Fatal(err)
	}
	past, err := l.RootAt(2)
	if err != nil {
		t.Fatal(err)
	}
	if rec, _ := past.Get("a"); string(rec.Value) != "other 1" {
		t.Errorf("revision 2 is of the history before the restore: %q", rec.Value)
	}
}

func TestReadErrorIsNotCorruption(t *testing.T) {
	l, _ := randomLog(3, 10)
	broken := errors.New("connection reset")
	r := io.MultiReader(bytes.NewReader(snapshotOf(t, l.State)[:100]), iotest.ErrReader(broken))
	err := state.New(state.Options{}).Restore(r)
	if !errors.Is(err, broken) || errors.Is(err, state.ErrCorruptSnapshot) {
		t.Errorf("got %v", err)
	}
}

func TestWriteErrorIsReturned(t *testing.T) {
	l, _ := randomLog(3, 10)
	full := errors.New("no space left on device")
	if _, err := l.Snapshot().WriteTo(failingWriter{full}); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestVerify(t *testing.T) {
	l, _ := randomLog(6, 50)
	root, err := state.Verify(bytes.NewReader(snapshotOf(t, l.State)))
	if err != nil {
		t.Fatal(err)
	}
	wantSameRoot(t, l.Root(), root)
}

func TestLargeValuesFitIntoBlocks(t *testing.T) {
	l := newLog(state.Options{})
	large := make([]byte, command.MaxValueBytes)
	for i := range 3 {
		large[0] = byte(i)
		l.mustOp(t, command.Op{Kind: command.Put, Key: "a", Value: large})
	}
	var b bytes.Buffer
	if _, err := l.Snapshot().WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	s := state.New(state.Options{})
	if err := s.Restore(&b); err != nil {
		t.Fatal(err)
	}
	wantSame(t, l.State, s)
}

func TestGoldenSnapshot(t *testing.T) {
	t.Run("version 1", func(t *testing.T) { wantGolden(t, "testdata/snapshot-v1.hex", goldenLog(t).State) })
	t.Run("version 2", func(t *testing.T) {
		l := goldenLog(t)
		l.mustOp(t, command.Op{Kind: command.SetFeatureLevel, Revision: 2, Value: []byte("l-1")})
		next, ok := l.Root().Rebirth(state.Birth{Index: 1 << 40, Revision: 1 << 41, ClusterID: "c-2", Life: "l-2", FormerLife: "l-1"})
		if !ok {
			t.Fatal("no next life")
		}
		var b bytes.Buffer
		if _, err := next.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		s := restored(t, b.Bytes())
		if root := s.Root(); root.Life != "l-2" || root.FormerLife != "l-1" || root.Revision != 1<<41 || root.Index != 1<<40 || root.ClusterID != "c-2" {
			t.Errorf("begins as %+v", root)
		}
		wantGolden(t, "testdata/snapshot-v2.hex", s)
	})
}

func goldenLog(t *testing.T) *log {
	t.Helper()
	l := newLog(state.Options{})
	session := l.apply(openSession())[0].Revision
	l.mustOp(t, command.Op{Kind: command.SetClusterID, Value: []byte("c-1")})
	l.mustOp(t, command.Op{Kind: command.SetFeatureLevel, Revision: 2})
	l.mustOp(t, put("a", "1"))
	l.mustOp(t, command.Op{Kind: command.BumpRevision, Revision: 300})
	c := inSession(session, 1, put("a", "2"))
	c.Actor, c.Cause, c.RequestID = command.Actor{User: "u", FieldManager: "m"}, command.Cause{UID: "c", Revision: 1}, "r"
	l.apply(c, inSession(session, 2, absent(put("a", "3"))))
	l.mustOp(t, put("b", "1"), put("c", "1"))
	l.mustOp(t, del("b"))
	return l
}

func wantGolden(t *testing.T, file string, s *state.State) {
	t.Helper()
	got := hex.EncodeToString(snapshotOf(t, s)) + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the format changed; snapshots of older releases become unreadable:\n%s", diff)
	}
	raw, err := hex.DecodeString(string(bytes.TrimSpace(want)))
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, s, restored(t, raw))
}
