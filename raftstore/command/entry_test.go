package command_test

import (
	"encoding/hex"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/wire"
)

var update = flag.Bool("update", false, "rewrite the golden files; the format must never change, so only for a new version")

// goldenEntry uses every field and every kind of operation.
func goldenEntry() *command.Entry {
	return &command.Entry{FormatVersion: 1, Term: 7, Commands: []command.Command{
		{
			Session: 3, Sequence: 300, Fence: 7,
			Actor: command.Actor{User: "system:serviceaccount:kube-system:deployment-controller", FieldManager: "setpoint"},
			Cause: command.Cause{UID: "0b5c", Revision: 41}, RequestID: "req-1",
			Ops: []command.Op{
				{Kind: command.Put, Key: "pods/default/web", UID: "11aa", Value: []byte{command.EncodingProtobuf, 0, 255}, Precondition: command.Absent},
				{Kind: command.Delete, Key: "pods/default/old", UID: "22bb", Precondition: command.Present},
				{Kind: command.Check, Key: "namespaces/default", Precondition: command.AtRevision, Revision: 1 << 40},
			},
		},
		{Ops: []command.Op{{Kind: command.OpenSession}}},
		{Ops: []command.Op{{Kind: command.CloseSession, Revision: 9}}},
		{Ops: []command.Op{{Kind: command.StateHash, Revision: 4096, Value: []byte("0123456789abcdef")}}},
		{Ops: []command.Op{{Kind: command.BumpRevision, Revision: 1_000_000_000}}},
		{Ops: []command.Op{{Kind: command.SetFeatureLevel, Revision: 2}}},
		{Ops: []command.Op{{Kind: command.SetClusterID, Value: []byte("c-1")}}},
	}}
}

// goldenLife has what came with feature level 2.
func goldenLife() *command.Entry {
	return &command.Entry{FormatVersion: 1, Term: 7, Commands: []command.Command{
		{Ops: []command.Op{{Kind: command.SetFeatureLevel, Revision: 2, Value: []byte("0123456789abcdef")}}},
	}}
}

func TestGoldenBytes(t *testing.T) {
	t.Run("level 1", func(t *testing.T) { wantGolden(t, "testdata/entry-v1.hex", goldenEntry()) })
	t.Run("level 2", func(t *testing.T) { wantGolden(t, "testdata/entry-v1-level2.hex", goldenLife()) })
}

// lastKind is the newest: system operations are the last ones.
func lastKind() command.OpKind {
	last := command.OpenSession
	for (last + 1).IsSystem() {
		last++
	}
	return last
}

// TestEveryKindIsGolden: the bytes of each are kept, so that a later release reads what this one wrote.
func TestEveryKindIsGolden(t *testing.T) {
	golden := map[command.OpKind]bool{}
	for _, entry := range []*command.Entry{goldenEntry(), goldenLife()} {
		for _, c := range entry.Commands {
			for _, op := range c.Ops {
				golden[op.Kind] = true
			}
		}
	}
	for kind := command.Put; kind <= lastKind(); kind++ {
		if !golden[kind] {
			t.Errorf("no golden entry has the kind %d: add one, in a file of its own", kind)
		}
	}
}

func wantGolden(t *testing.T, file string, golden *command.Entry) {
	t.Helper()
	got := hex.EncodeToString(golden.Marshal()) + "\n"
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
		t.Errorf("the format changed; logs of older releases become unreadable:\n%s", diff)
	}
	raw, err := hex.DecodeString(strings.TrimSpace(string(want)))
	if err != nil {
		t.Fatal(err)
	}
	entry, err := command.Unmarshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(golden, entry); diff != "" {
		t.Error(diff)
	}
}

func TestRoundTrip(t *testing.T) {
	for seed := range uint64(200) {
		want := randomEntry(rand.New(rand.NewPCG(seed, 0)))
		got, err := command.Unmarshal(want.Marshal())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

func randomEntry(r *rand.Rand) *command.Entry {
	text := func() string { return strings.Repeat("x", r.IntN(40)) }
	e := &command.Entry{FormatVersion: command.FormatVersion, Term: r.Uint64()}
	for range r.IntN(5) {
		c := command.Command{
			Session: r.Uint64(), Sequence: r.Uint64(), Fence: r.Uint64(), RequestID: text(),
			Actor: command.Actor{User: text(), FieldManager: text()}, Cause: command.Cause{UID: text(), Revision: r.Uint64()},
		}
		for range r.IntN(4) {
			op := command.Op{
				Kind: 1 + command.OpKind(r.IntN(int(lastKind()))), Precondition: command.Precondition(r.IntN(4)),
				Key: text(), UID: text(), Revision: r.Uint64() >> r.IntN(64),
			}
			if n := r.IntN(300); n > 0 {
				op.Value = make([]byte, n)
			}
			c.Ops = append(c.Ops, op)
		}
		e.Commands = append(e.Commands, c)
	}
	return e
}

func TestSizeBoundsTheEncoding(t *testing.T) {
	for seed := range uint64(100) {
		e := randomEntry(rand.New(rand.NewPCG(seed, 1)))
		bound := 0
		for i := range e.Commands {
			bound += e.Commands[i].Size()
		}
		const frame = 1 + 10 + 10 + 4
		if n := len(e.Marshal()); n > bound+frame {
			t.Fatalf("seed %d: %d bytes, Size says at most %d", seed, n, bound+frame)
		}
	}
}

func TestEveryFlippedByteIsNoticed(t *testing.T) {
	good := goldenEntry().Marshal()
	for i := range good {
		bad := append([]byte(nil), good...)
		bad[i] ^= 0x10
		if _, err := command.Unmarshal(bad); !errors.Is(err, command.ErrChecksum) {
			t.Fatalf("byte %d flipped: %v, want ErrChecksum", i, err)
		}
		if _, err := command.Unmarshal(good[:i]); err == nil {
			t.Fatalf("cut to %d bytes: no error", i)
		}
	}
}

func TestNewerWriters(t *testing.T) {
	entryWith := func(op command.Op) []byte {
		return (&command.Entry{FormatVersion: 1, Commands: []command.Command{{Ops: []command.Op{op}}}}).Marshal()
	}
	cases := []struct {
		name string
		data []byte
		want error
	}{
		{"kind", entryWith(command.Op{Kind: lastKind() + 1, Key: "a"}), command.ErrUnknownOp},
		{"kind zero", entryWith(command.Op{Key: "a"}), command.ErrUnknownOp},
		{"precondition", entryWith(command.Op{Kind: command.Put, Precondition: 4}), command.ErrUnknownOp},
		{"format", (&command.Entry{FormatVersion: 2}).Marshal(), command.ErrUnknownFormat},
		{"empty", nil, command.ErrMalformed},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := command.Unmarshal(c.data); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestResultRoundTrip(t *testing.T) {
	for _, want := range []command.Result{
		{},
		{Code: command.OK, Revision: 9, Revisions: []uint64{9}},
		{Code: command.OK, Revision: 9, Revisions: []uint64{8, 0, 9}},
		{Code: command.PreconditionFailed, Revision: 1 << 62, Current: 77, FailedOp: 2, Message: "key was changed"},
	} {
		r := wire.NewReader(want.Append(nil))
		got := command.ReadResult(r)
		if r.Err() != nil || r.Len() != 0 {
			t.Fatalf("error %v, %d bytes left", r.Err(), r.Len())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	good := goldenEntry().Marshal()
	f.Add(good[:len(good)-4])
	f.Add((&command.Entry{FormatVersion: 1}).Marshal())
	f.Fuzz(func(t *testing.T, body []byte) {
		_, _ = command.Unmarshal(body)
		// Behind a right checksum the parser itself gets its turn.
		sum := wire.Checksum(body)
		e, err := command.Unmarshal(append(body[:len(body):len(body)], byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)))
		if err != nil {
			return
		}
		again, err := command.Unmarshal(e.Marshal())
		if err != nil {
			t.Fatalf("own bytes refused: %v", err)
		}
		if diff := cmp.Diff(e, again); diff != "" {
			t.Fatal(diff)
		}
	})
}

func BenchmarkMarshal(b *testing.B) {
	e := &command.Entry{FormatVersion: 1}
	for range 64 {
		e.Commands = append(e.Commands, command.Command{Session: 1, Ops: []command.Op{{Kind: command.Put, Key: "pods/default/web-0", Value: make([]byte, 1500)}}})
	}
	for b.Loop() {
		if _, err := command.Unmarshal(e.Marshal()); err != nil {
			b.Fatal(err)
		}
	}
}
