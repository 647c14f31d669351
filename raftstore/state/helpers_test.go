package state_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// log feeds a state one entry after the other.
type log struct {
	*state.State
	index, term uint64
}

func newLog(options state.Options) *log { return &log{State: state.New(options), term: 5} }

func (l *log) apply(commands ...command.Command) []command.Result {
	l.index++
	return l.Apply(l.index, l.term, &command.Entry{FormatVersion: command.FormatVersion, Term: l.term, Commands: commands})
}

func (l *log) op(ops ...command.Op) command.Result { return l.apply(command.Command{Ops: ops})[0] }

func (l *log) mustOp(t testing.TB, ops ...command.Op) command.Result {
	t.Helper()
	r := l.op(ops...)
	if r.Code != command.OK {
		t.Fatalf("result %+v", r)
	}
	return r
}

func put(key, value string) command.Op {
	return command.Op{Kind: command.Put, Key: key, UID: "uid-" + key, Value: []byte(value)}
}

func del(key string) command.Op { return command.Op{Kind: command.Delete, Key: key} }

func check(key string) command.Op { return command.Op{Kind: command.Check, Key: key} }

func absent(op command.Op) command.Op { op.Precondition = command.Absent; return op }

func present(op command.Op) command.Op { op.Precondition = command.Present; return op }

func at(revision uint64, op command.Op) command.Op {
	op.Precondition, op.Revision = command.AtRevision, revision
	return op
}

func uid(uid string, op command.Op) command.Op { op.UID = uid; return op }

// dump shows all records of a root.
// dump is what a root holds. One that weighs it wrong holds something more.
func dump(root *state.Root) map[string]string {
	all, bytes := map[string]string{}, int64(0)
	defer func() {
		if bytes != root.Bytes() {
			all["wrong"] = fmt.Sprintf("%d bytes, the root says %d", bytes, root.Bytes())
		}
	}()
	for rec := range root.All("") {
		bytes += int64(rec.Bytes()) + 256
		all[rec.Key] = fmt.Sprintf("%s uid=%s create=%d mod=%d", rec.Value, rec.UID, rec.CreateRevision, rec.ModRevision)
	}
	return all
}

func wantSame(t testing.TB, want, got *state.State) {
	t.Helper()
	wantSameRoot(t, want.Root(), got.Root())
	wantRev, wantHash := want.Hash()
	gotRev, gotHash := got.Hash()
	if wantRev != gotRev || wantHash != gotHash {
		t.Fatalf("hash %x at %d, want %x at %d", gotHash, gotRev, wantHash, wantRev)
	}
}

func wantSameRoot(t testing.TB, want, got *state.Root) {
	t.Helper()
	if diff := cmp.Diff(dump(want), dump(got)); diff != "" {
		t.Fatal(diff)
	}
	if want.Revision != got.Revision || want.Index != got.Index || want.ClusterID != got.ClusterID || want.FeatureLevel != got.FeatureLevel ||
		want.Life != got.Life || want.FormerLife != got.FormerLife {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

// randomCommand is any command over few keys, so that preconditions hold and fail
// about equally, retries happen, and some commands make no sense.
func randomCommand(r *rand.Rand, revision uint64) command.Command {
	c := command.Command{
		Actor: command.Actor{User: "u"}, RequestID: fmt.Sprint(r.IntN(100)),
		Cause: command.Cause{UID: "c", Revision: revision},
	}
	if r.IntN(3) == 0 {
		c.Session, c.Sequence = uint64(1+r.IntN(3)), uint64(r.IntN(30))
	}
	if r.IntN(5) == 0 {
		c.Fence = uint64(4 + r.IntN(2))
	}
	switch r.IntN(60) {
	case 0:
		c.Ops = []command.Op{{Kind: command.BumpRevision, Revision: uint64(r.IntN(50))}}
		return c
	case 1:
		c.Ops = []command.Op{{Kind: command.SetFeatureLevel, Revision: uint64(r.IntN(9))}}
		return c
	case 2:
		c.Ops = []command.Op{{Kind: command.OpKind(r.IntN(12)), Revision: r.Uint64()}}
		return c
	}
	for range 1 + r.IntN(1+r.IntN(4)) {
		c.Ops = append(c.Ops, randomOp(r, revision))
	}
	return c
}

func randomOp(r *rand.Rand, revision uint64) command.Op {
	kinds := []command.OpKind{command.Put, command.Put, command.Put, command.Delete, command.Check}
	op := command.Op{
		Kind: kinds[r.IntN(len(kinds))], Key: fmt.Sprintf("%c/%d", 'a'+r.IntN(3), r.IntN(8)),
		Precondition: command.Precondition(r.IntN(4)), Revision: revision - min(revision, uint64(r.IntN(20))),
		Value: bytes.Repeat([]byte{byte('a' + r.IntN(26))}, r.IntN(40)),
	}
	if r.IntN(2) == 0 {
		op.UID = []string{"u1", "u2"}[r.IntN(2)]
	}
	return op
}
