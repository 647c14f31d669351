package state_test

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/state"
	"github.com/setpoint-io/setpoint/raftstore/watch"
)

func claim(revision uint64, hash [16]byte) command.Op {
	return command.Op{Kind: command.StateHash, Revision: revision, Value: hash[:]}
}

func TestComparison(t *testing.T) {
	var found, agreed []state.Comparison
	l := newLog(state.Options{OnComparison: func(c state.Comparison) {
		if c.Agrees() {
			agreed = append(agreed, c)
		} else {
			found = append(found, c)
		}
	}})
	l.mustOp(t, put("a", "1"))
	revision, hash := l.Hash()
	wrong := hash
	wrong[3] ^= 1
	one := func(op command.Op) command.Command { return command.Command{Ops: []command.Op{op}} }

	// Each claim is about revision 1 but judged later, the last one inside an
	// entry that changes things itself.
	l.apply(one(claim(revision, hash)))
	l.mustOp(t, put("b", "1"))
	l.mustOp(t, del("a"))
	l.apply(one(put("c", "1")), one(claim(revision, hash)))
	if found != nil || len(agreed) != 2 || agreed[1].Got != hash {
		t.Fatalf("true claims: %+v were found to differ, %+v to agree", found, agreed)
	}
	l.apply(one(put("c", "2")), one(claim(revision, wrong)))
	want := []state.Comparison{{Index: l.index, Revision: revision, Want: wrong, Got: hash}}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
	found = nil
	l.apply(one(claim(1000, hash)))
	if len(found) != 1 {
		t.Error("claim about a revision not reached went unnoticed")
	}
	found = nil
	l.mustOp(t, command.Op{Kind: command.BumpRevision, Revision: 10})
	l.apply(one(claim(revision, wrong)))
	if found != nil || len(agreed) != 2 {
		t.Error("claim beyond the history cannot be judged, but was")
	}
}

func TestBump(t *testing.T) {
	l := newLog(state.Options{})
	l.mustOp(t, put("a", "1"))
	w, err := l.Ring().Watch("a", 1)
	if err != nil {
		t.Fatal(err)
	}
	bump := command.Command{Ops: []command.Op{{Kind: command.BumpRevision, Revision: 1000}}}
	l.apply(command.Command{Ops: []command.Op{put("b", "1")}}, bump, command.Command{Ops: []command.Op{put("c", "1")}})
	if _, err := w.Next(t.Context()); !errors.Is(err, watch.ErrCompacted) {
		t.Errorf("watcher: %v", err)
	}
	if _, err := l.RootAt(1); !errors.Is(err, state.ErrCompacted) {
		t.Errorf("root before the gap: %v", err)
	}
	if rec, _ := l.Root().Get("c"); rec.ModRevision != 1003 || l.Root().Revision != 1003 {
		t.Errorf("record after the gap at %d, store at %d", rec.ModRevision, l.Root().Revision)
	}
	past, err := l.RootAt(1002)
	if err != nil {
		t.Fatal(err)
	}
	if past.Count("c") != 0 || past.Count("b") != 1 {
		t.Errorf("root behind the gap holds %v", dump(past))
	}
}

func TestClusterIDIsSetOnce(t *testing.T) {
	l := newLog(state.Options{})
	set := func(id string) command.Code {
		return l.op(command.Op{Kind: command.SetClusterID, Value: []byte(id)}).Code
	}
	for _, c := range []struct {
		id   string
		want command.Code
	}{{"one", command.OK}, {"one", command.OK}, {"two", command.PreconditionFailed}} {
		if got := set(c.id); got != c.want || l.Root().ClusterID != "one" {
			t.Errorf("set %s: %v, id is %q", c.id, got, l.Root().ClusterID)
		}
	}
}

func TestALifeIsNamedOnce(t *testing.T) {
	l := newLog(state.Options{})
	for _, c := range []struct {
		level      uint64
		life, want string
	}{{1, "", ""}, {1, "early", ""}, {2, "one", "one"}, {2, "two", "one"}, {3, "", "one"}, {3, "three", "one"}} {
		l.mustOp(t, command.Op{Kind: command.SetFeatureLevel, Revision: c.level, Value: []byte(c.life)})
		if got := l.Root().Life; got != c.want {
			t.Errorf("level %d, life %q: the life is %q, want %q", c.level, c.life, got, c.want)
		}
	}
}

func TestFeatureLevelNeverFalls(t *testing.T) {
	l := newLog(state.Options{})
	for _, c := range []struct{ set, want uint64 }{{2, 2}, {1, 2}, {5, 5}} {
		l.mustOp(t, command.Op{Kind: command.SetFeatureLevel, Revision: c.set})
		if got := l.Root().FeatureLevel; got != c.want {
			t.Errorf("after %d: level %d, want %d", c.set, got, c.want)
		}
	}
}

// TestRootAt keeps every root as it is published and expects RootAt to rebuild
// the same, for as long as the ring reaches back.
func TestRootAt(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 4))
		l := newLog(state.Options{RingBytes: 30_000})
		published := map[uint64]*state.Root{}
		for range 400 {
			c := randomCommand(r, l.Root().Revision)
			l.apply(c)
			published[l.Root().Revision] = l.Root()
			if r.IntN(10) == 0 {
				checkPast(t, l, r.Uint64N(l.Root().Revision+1), published)
			}
		}
		compacted, last := l.Ring().Bounds()
		for revision := compacted - min(compacted, 3); revision <= last; revision++ {
			checkPast(t, l, revision, published)
		}
		if _, err := l.RootAt(l.Root().Revision + 1); !errors.Is(err, state.ErrFuture) {
			t.Fatalf("future: %v", err)
		}
	}
}

// TestPastRootsDoNotOutliveTheHistory keeps rebuilt roots from holding on to
// objects that nobody can ask for any more.
func TestPastRootsDoNotOutliveTheHistory(t *testing.T) {
	l := newLog(state.Options{RingBytes: 5000})
	for range 5 {
		l.mustOp(t, put("a", "1"))
	}
	past, err := l.RootAt(3)
	if err != nil {
		t.Fatal(err)
	}
	held := weak.Make(past)
	for range 100 {
		l.mustOp(t, put("a", "1"))
	}
	runtime.GC()
	if held.Value() != nil {
		t.Error("the root is still in memory")
	}
	runtime.KeepAlive(l)
}

func checkPast(t *testing.T, l *log, revision uint64, published map[uint64]*state.Root) {
	t.Helper()
	compacted, _ := l.Ring().Bounds()
	got, err := l.RootAt(revision)
	if revision < compacted {
		if !errors.Is(err, state.ErrCompacted) {
			t.Fatalf("revision %d, compacted %d: %v", revision, compacted, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	// Inside an entry or a transaction nothing was published to compare with.
	if want := published[revision]; want != nil {
		if diff := cmp.Diff(dump(want), dump(got)); diff != "" || got.Revision != revision {
			t.Fatalf("revision %d: %s", revision, diff)
		}
	}
}

// TestEverySystemOperationIsPerformed: one that has a number and is forgotten here would be answered as done.
func TestEverySystemOperationIsPerformed(t *testing.T) {
	values := map[command.OpKind][]byte{command.StateHash: make([]byte, command.HashBytes), command.SetClusterID: []byte("c-1")}
	for kind := command.OpenSession; kind.IsSystem(); kind++ {
		if r := newLog(state.Options{}).op(command.Op{Kind: kind, Value: values[kind]}); r.Code != command.OK {
			t.Errorf("kind %d: %+v", kind, r)
		}
	}
}
