package state_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/state"
	"github.com/setpoint-io/setpoint/raftstore/watch"
)

// The world of the table: "a" is at revision 3 with uid "uid-a", "gone" was
// deleted; the store is at revision 5.
func smallWorld(t *testing.T) *log {
	l := newLog(state.Options{})
	l.mustOp(t, put("a", "1"))
	l.mustOp(t, put("gone", "1"))
	l.mustOp(t, put("a", "2"))
	l.mustOp(t, put("b", "1"))
	l.mustOp(t, del("gone"))
	return l
}

func TestJudgement(t *testing.T) {
	ok := func(rev uint64, revs ...uint64) command.Result {
		return command.Result{Code: command.OK, Revision: rev, Revisions: revs}
	}
	failed := func(op int, current uint64) command.Result {
		return command.Result{Code: command.PreconditionFailed, Revision: 5, FailedOp: op, Current: current}
	}
	rejected := command.Result{Code: command.Rejected, Revision: 5}
	cases := []struct {
		name string
		ops  []command.Op
		want command.Result
	}{
		{"put any on present", []command.Op{put("a", "x")}, ok(6)},
		{"put any on absent", []command.Op{put("n", "x")}, ok(6)},
		{"create", []command.Op{absent(put("n", "x"))}, ok(6)},
		{"create again after delete", []command.Op{absent(put("gone", "x"))}, ok(6)},
		{"create on present", []command.Op{absent(put("a", "x"))}, failed(0, 3)},
		{"update present", []command.Op{present(put("a", "x"))}, ok(6)},
		{"update absent", []command.Op{present(put("n", "x"))}, failed(0, 0)},
		{"update other uid", []command.Op{present(uid("other", put("a", "x")))}, failed(0, 3)},
		{"update without uid", []command.Op{present(uid("", put("a", "x")))}, ok(6)},
		{"same value still counts", []command.Op{put("a", "2")}, ok(6)},
		{"at revision", []command.Op{at(3, put("a", "x"))}, ok(6)},
		{"at older revision", []command.Op{at(1, put("a", "x"))}, failed(0, 3)},
		{"at future revision", []command.Op{at(9, put("a", "x"))}, failed(0, 3)},
		{"at revision, absent", []command.Op{at(3, put("gone", "x"))}, failed(0, 0)},
		{"at revision, other uid", []command.Op{at(3, uid("other", put("a", "x")))}, failed(0, 3)},
		{"at revision zero", []command.Op{at(0, put("a", "x"))}, rejected},
		{"delete", []command.Op{del("a")}, ok(6)},
		{"delete absent", []command.Op{del("n")}, ok(5)},
		{"delete absent with present", []command.Op{present(del("n"))}, failed(0, 0)},
		{"delete at revision", []command.Op{at(3, uid("uid-a", del("a")))}, ok(6)},
		{"delete other uid", []command.Op{present(uid("other", del("a")))}, failed(0, 3)},
		{"check holds", []command.Op{at(3, check("a"))}, ok(5)},
		{"check fails", []command.Op{absent(check("a"))}, failed(0, 3)},
		{"all of several", []command.Op{at(3, put("a", "x")), absent(put("n", "x")), present(check("b")), del("b")}, ok(8, 6, 7, 0, 8)},
		{"one of several fails", []command.Op{put("a", "x"), absent(put("b", "x"))}, failed(1, 4)},
		{"check and write one key", []command.Op{present(check("a")), put("a", "x")}, ok(6, 0, 6)},
		{"write one key twice", []command.Op{put("a", "x"), del("a")}, command.Result{Code: command.Rejected, Revision: 5, FailedOp: 1}},
		{"no operations", nil, rejected},
		{"unknown kind", []command.Op{{Kind: 77, Key: "a"}}, rejected},
		{"empty key", []command.Op{put("", "x")}, rejected},
		{"system op in company", []command.Op{put("a", "x"), {Kind: command.OpenSession}}, rejected},
		{"bump", []command.Op{{Kind: command.BumpRevision, Revision: 100}}, ok(105)},
		{"bump too far", []command.Op{{Kind: command.BumpRevision, Revision: math.MaxUint64 - 2}}, rejected},
		{"hash of the wrong length", []command.Op{{Kind: command.StateHash, Value: []byte("x")}}, rejected},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := smallWorld(t)
			before := dump(l.Root())
			got := l.op(c.ops...)
			if (got.Message == "") != (got.Code == command.OK) {
				t.Errorf("code %v with message %q", got.Code, got.Message)
			}
			got.Message = ""
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if l.Root().Revision != c.want.Revision {
				t.Errorf("store at %d, want %d", l.Root().Revision, c.want.Revision)
			}
			if c.want.Code != command.OK && !cmp.Equal(before, dump(l.Root())) {
				t.Error("a refused command changed something")
			}
		})
	}
}

func TestFence(t *testing.T) {
	cases := []struct {
		fence uint64
		want  command.Code
	}{{0, command.OK}, {5, command.OK}, {4, command.FenceStale}, {6, command.FenceStale}}
	for _, c := range cases {
		l := newLog(state.Options{}) // term 5
		got := l.apply(command.Command{Fence: c.fence, Ops: []command.Op{put("a", "1")}})[0]
		if got.Code != c.want || (l.Root().Len() == 1) != (c.want == command.OK) {
			t.Errorf("fence %d in term 5: %v, %d records", c.fence, got.Code, l.Root().Len())
		}
	}
}

func TestRefusedCommandDoesNotHinderOthersOfItsEntry(t *testing.T) {
	l := newLog(state.Options{})
	one := func(op command.Op) command.Command { return command.Command{Ops: []command.Op{op}} }
	results := l.apply(one(absent(put("a", "1"))), one(absent(put("a", "2"))), one(at(1, put("a", "3"))))
	var codes []command.Code
	for _, r := range results {
		codes = append(codes, r.Code)
	}
	if diff := cmp.Diff([]command.Code{command.OK, command.PreconditionFailed, command.OK}, codes); diff != "" {
		t.Error(diff)
	}
	if rec, _ := l.Root().Get("a"); string(rec.Value) != "3" || rec.CreateRevision != 1 || rec.ModRevision != 2 {
		t.Errorf("record %+v", rec)
	}
}

func TestEvents(t *testing.T) {
	l := newLog(state.Options{})
	l.mustOp(t, put("a", "1"))
	first, _ := l.Root().Get("a")
	l.apply(command.Command{
		Actor: command.Actor{User: "ann", FieldManager: "kubectl"}, Cause: command.Cause{UID: "c", Revision: 9}, RequestID: "r",
		Ops: []command.Op{put("a", "2"), put("b", "1")},
	})
	second, _ := l.Root().Get("a")
	b, _ := l.Root().Get("b")
	l.mustOp(t, del("a"))
	events, err := l.Ring().Since(1)
	if err != nil {
		t.Fatal(err)
	}
	want := []watch.Event{
		{Type: watch.Put, Revision: 2, Key: "a", Record: second, Prev: first},
		{Type: watch.Put, Revision: 3, Key: "b", Record: b},
		{Type: watch.Delete, Revision: 4, Key: "a", Prev: second},
	}
	for i, e := range events {
		if e.Type != want[i].Type || e.Revision != want[i].Revision || e.Key != want[i].Key || e.Record != want[i].Record || e.Prev != want[i].Prev {
			t.Errorf("event %d is %+v, want %+v", i, e, want[i])
		}
	}
	origin := command.Origin{
		Actor: command.Actor{User: "ann", FieldManager: "kubectl"}, Cause: command.Cause{UID: "c", Revision: 9},
		RequestID: "r", Index: 2, Term: 5,
	}
	if diff := cmp.Diff(&origin, events[1].Origin); diff != "" {
		t.Error(diff)
	}
}

func TestStateKeepsItsOwnBytes(t *testing.T) {
	l := newLog(state.Options{})
	value := []byte("mine")
	l.mustOp(t, command.Op{Kind: command.Put, Key: "a", Value: value})
	copy(value, "xxxx")
	if rec, _ := l.Root().Get("a"); string(rec.Value) != "mine" {
		t.Errorf("record holds %q", rec.Value)
	}
}

func TestOldEntryPanics(t *testing.T) {
	l := newLog(state.Options{})
	l.mustOp(t, put("a", "1"))
	defer func() {
		if recover() == nil {
			t.Error("entry applied twice")
		}
	}()
	l.Apply(1, 5, &command.Entry{})
}

// TestAgainstModel compares the state with a map that knows the rules in their
// plainest form.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 2))
		l, m := newLog(state.Options{}), model{objects: map[string]object{}}
		for range 300 {
			c := randomCommand(r, m.revision)
			c.Session, c.Fence = 0, 0
			if c.Validate() != nil || c.Ops[0].Kind.IsSystem() {
				continue
			}
			want := m.apply(c.Ops)
			if got := l.apply(c)[0]; (got.Code == command.OK) != want {
				t.Fatalf("seed %d: %+v for %+v", seed, got, c)
			}
		}
		if diff := cmp.Diff(m.dump(), dump(l.Root())); diff != "" || m.revision != l.Root().Revision {
			t.Fatalf("seed %d: revision %d, want %d: %s", seed, l.Root().Revision, m.revision, diff)
		}
	}
}

type object struct {
	uid, value  string
	create, mod uint64
}

type model struct {
	revision uint64
	objects  map[string]object
}

func (m *model) apply(ops []command.Op) bool {
	writes := map[string]int{}
	for _, op := range ops {
		o, found := m.objects[op.Key]
		same := found && (op.UID == "" || op.UID == o.uid)
		holds := []bool{true, !found, same, same && o.mod == op.Revision}[op.Precondition]
		if op.Kind != command.Check {
			writes[op.Key]++
		}
		if !holds || writes[op.Key] > 1 {
			return false
		}
	}
	for _, op := range ops {
		o, found := m.objects[op.Key]
		if op.Kind == command.Put {
			m.revision++
			if !found {
				o.create = m.revision
			}
			m.objects[op.Key] = object{op.UID, string(op.Value), o.create, m.revision}
		} else if op.Kind == command.Delete && found {
			m.revision++
			delete(m.objects, op.Key)
		}
	}
	return true
}

func (m *model) dump() map[string]string {
	all := map[string]string{}
	for key, o := range m.objects {
		all[key] = fmt.Sprintf("%s uid=%s create=%d mod=%d", o.value, o.uid, o.create, o.mod)
	}
	return all
}

// TestBatchesDoNotMatter applies one history in entries of different sizes. The
// index of an entry decides nothing but session ids, so no sessions here.
func TestBatchesDoNotMatter(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		var commands []command.Command
		for range 500 {
			c := randomCommand(r, uint64(len(commands)))
			c.Session = 0
			commands = append(commands, c)
		}
		single, batched := newLog(state.Options{}), newLog(state.Options{})
		for _, c := range commands {
			single.apply(c)
		}
		for rest := commands; len(rest) > 0; {
			n := min(len(rest), 1+r.IntN(40))
			batched.apply(rest[:n]...)
			rest = rest[n:]
		}
		_, a := single.Hash()
		_, b := batched.Hash()
		if diff := cmp.Diff(dump(single.Root()), dump(batched.Root())); diff != "" || a != b {
			t.Fatalf("seed %d: hashes %x, %x: %s", seed, a, b, diff)
		}
	}
}

func TestHashIsThatOfTheRecordsAlone(t *testing.T) {
	l := newLog(state.Options{})
	l.mustOp(t, put("a", "1"))
	rev, hash := l.Hash()
	l.mustOp(t, put("b", "1"))
	l.mustOp(t, del("b"))
	if rev2, hash2 := l.Hash(); hash2 != hash || rev2 != rev+2 {
		t.Errorf("put and delete left a trace: %x, %x", hash, hash2)
	}
	l.mustOp(t, del("a"))
	if _, hash := l.Hash(); hash != [16]byte{} {
		t.Errorf("empty store has hash %x", hash)
	}
}

func TestReadersOfAPublishedRootSeeNoChange(t *testing.T) {
	l := newLog(state.Options{})
	for i := range 1000 {
		l.mustOp(t, put(fmt.Sprintf("k/%04d", i), "old"))
	}
	root := l.Root()
	before := dump(root)
	for i := range 1000 {
		l.mustOp(t, put(fmt.Sprintf("k/%04d", i), "new"))
		if i%3 == 0 {
			l.mustOp(t, del(fmt.Sprintf("k/%04d", i)))
		}
	}
	if !cmp.Equal(before, dump(root)) {
		t.Error("root changed after publication")
	}
}

func TestRootIteration(t *testing.T) {
	l := newLog(state.Options{})
	for _, key := range []string{"a/1", "b/1", "b/2", "b/3", "ba/1", "c/1"} {
		l.mustOp(t, put(key, ""))
	}
	var keys bytes.Buffer
	for rec := range l.Root().From("b/", "b/2") {
		keys.WriteString(rec.Key + " ")
	}
	if keys.String() != "b/2 b/3 " {
		t.Errorf("from: %s", keys.String())
	}
	if got := l.Root().CountFrom("b/", "b/2"); got != 2 {
		t.Errorf("count from b/2: %d, want 2", got)
	}
	for rec := range l.Root().From("b/", "") {
		if rec.Key != "b/1" {
			t.Errorf("first is %s", rec.Key)
		}
		break
	}
	for prefix, want := range map[string]int{"": 6, "b/": 3, "b": 4, "x": 0} {
		if got := l.Root().Count(prefix); got != want {
			t.Errorf("count of %q: %d, want %d", prefix, got, want)
		}
	}
}
