package history_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/history"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// openHistory opens the history of a store in a folder. end stops it, and may be called twice.
func openHistory(t *testing.T, source history.Source, dir string, change func(*history.Config)) (h *history.History, end func()) {
	t.Helper()
	c := history.Config{
		Dir: dir, Source: source, Retention: history.DefaultRetention, SizeBytes: history.DefaultSizeBytes, Logger: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&c)
	}
	h, err := history.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { h.Run(ctx) })
	end = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(end)
	return h, end
}

func key(i int) string {
	return fmt.Sprintf("/core/%s/ns%d/o%d", []string{"pods", "maps"}[i%2], i%3, i)
}

// write makes one random change; values are long enough that blocks are closed.
func write(t *testing.T, store *raftstoretest.Local, r *rand.Rand, keys, bytes int) {
	t.Helper()
	op := command.Op{Kind: command.Put, Key: key(r.IntN(keys)), UID: fmt.Sprint("uid", r.Uint32())}
	if r.IntN(4) == 0 {
		op.Kind, op.UID = command.Delete, ""
	} else {
		op.Value = make([]byte, 1+r.IntN(bytes))
		for i := range op.Value {
			op.Value[i] = byte(r.Uint32())
		}
	}
	c := command.Command{Actor: command.Actor{User: "alice", FieldManager: "test"}, Cause: command.Cause{UID: "u", Revision: 7}, Ops: []command.Op{op}}
	if _, err := store.Propose(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// same compares what history says of a folder or key at a revision with what was.
func same(t *testing.T, h *history.History, store *raftstoretest.Local, prefix string, revision uint64) {
	t.Helper()
	want, err := store.RootAt(revision)
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.At(t.Context(), prefix, revision)
	if err != nil {
		t.Fatalf("%q at %d: %v", prefix, revision, err)
	}
	var wanted, found []string
	for rec := range want.All(prefix) {
		if prefix != "" && prefix[len(prefix)-1] != '/' && rec.Key != prefix {
			continue
		}
		wanted = append(wanted, fmt.Sprintf("%s %s %d %d %x", rec.Key, rec.UID, rec.CreateRevision, rec.ModRevision, sha256.Sum256(rec.Value)))
	}
	for rec := range got.All("") {
		found = append(found, fmt.Sprintf("%s %s %d %d %x", rec.Key, rec.UID, rec.CreateRevision, rec.ModRevision, sha256.Sum256(rec.Value)))
	}
	if fmt.Sprint(wanted) != fmt.Sprint(found) {
		t.Fatalf("%q at %d:\n got %s\nwant %s", prefix, revision, found, wanted)
	}
}

// TestThePastIsWhatWas: random changes, and at every revision every folder and key is what the store itself was then; also after a
// restart, whose log gives back what was not yet written.
func TestThePastIsWhatWas(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	store, dir := raftstoretest.NewLocal(state.Options{RingBytes: 1 << 30}), t.TempDir()
	h, end := openHistory(t, store, dir, nil)
	for range 3 {
		for range 700 {
			write(t, store, r, 40, 2000)
		}
		for range 40 {
			revision := 1 + uint64(r.IntN(int(store.Root().Revision)))
			for _, prefix := range []string{"", "/core/pods/", "/core/pods/ns0/", key(r.IntN(40))} {
				same(t, h, store, prefix, revision)
			}
		}
		end()
		h, end = openHistory(t, store, dir, nil)
	}
	if s := h.Status(); s.Oldest != 0 || s.Newest != store.Root().Revision || len(s.Holes) > 0 || s.Changes != store.Root().Revision || s.Bytes == 0 {
		t.Errorf("%+v, revision %d", s, store.Root().Revision)
	}
}

// TestTheChangesOfAKey: all of them with who made them, what was before and after, the newest if there are too many.
func TestTheChangesOfAKey(t *testing.T) {
	store := raftstoretest.NewLocal(state.Options{RingBytes: 1 << 30})
	h, _ := openHistory(t, store, t.TempDir(), nil)
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		write(t, store, r, 10, 5000)
	}
	events, err := store.State().Ring().Since(0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		changes, holes, more, err := h.Changes(t.Context(), key(i), 0, 1000)
		if err != nil || len(holes) > 0 || more {
			t.Fatal(err, holes, more)
		}
		for _, e := range events {
			if e.Key != key(i) {
				continue
			}
			c := changes[0]
			changes = changes[1:]
			switch {
			case c.Revision != e.Revision, c.AfterLost, (c.After == nil) != (e.Record == nil), (c.Before == nil) != (e.Prev == nil),
				c.After != nil && !bytes.Equal(c.After.Value, e.Record.Value), c.Before != nil && !bytes.Equal(c.Before.Value, e.Prev.Value),
				c.Origin.Actor != e.Origin.Actor, c.Origin.Cause != e.Origin.Cause, c.Time.UnixMilli() != time.Unix(0, e.Origin.UnixNanos).UnixMilli():
				t.Fatalf("got %+v\nwant %+v", c, e)
			}
			at, ok := h.ChangeAt(t.Context(), e.Revision)
			if !ok || at.Key != e.Key || at.Revision != e.Revision {
				t.Fatalf("the change of %d is %+v", e.Revision, at)
			}
		}
		if len(changes) > 0 {
			t.Errorf("changes that never were: %+v", changes)
		}
	}
	newest, _, more, err := h.Changes(t.Context(), key(1), 0, 5)
	if err != nil || len(newest) != 5 || !more || newest[4].AfterLost {
		t.Errorf("the newest: %d, %v, %v", len(newest), more, err)
	}
}

// TestDamage: one file in the middle is flipped, cut or gone: what it does not hide is answered, the rest is named.
func TestDamage(t *testing.T) {
	for name, spoil := range map[string]func(path string, text []byte) error{
		"flipped": func(path string, text []byte) error {
			for i := 0; i < len(text); i += 1000 {
				text[i] ^= 1
			}
			return os.WriteFile(path, text, 0o600)
		},
		"cut":   func(path string, text []byte) error { return os.WriteFile(path, text[:len(text)/3], 0o600) },
		"gone":  func(path string, _ []byte) error { return os.Remove(path) },
		"empty": func(path string, _ []byte) error { return os.WriteFile(path, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			store, whole := raftstoretest.NewLocal(state.Options{RingBytes: 1 << 30}), t.TempDir()
			r := rand.New(rand.NewPCG(5, 6))
			for range 900 {
				write(t, store, r, 400, 9000)
			}
			h, end := openHistory(t, store, whole, func(c *history.Config) { c.FileBytes = 256 << 10 })
			same(t, h, store, key(0), store.Root().Revision) // it has all
			end()
			files, err := filepath.Glob(filepath.Join(whole, "*.history"))
			if err != nil || len(files) < 3 {
				t.Fatal(files, err)
			}
			text, err := os.ReadFile(files[1])
			if err == nil {
				err = spoil(files[1], text)
			}
			if err != nil {
				t.Fatal(err)
			}
			h, _ = openHistory(t, store, whole, nil)
			answered, holes := 0, 0
			for revision := uint64(0); revision < store.Root().Revision; revision += 23 {
				for range 3 {
					k := key(r.IntN(400))
					_, err := h.At(t.Context(), k, revision)
					switch {
					case err == nil:
						answered++
						same(t, h, store, k, revision)
					case errors.Is(err, history.ErrHole):
						holes++
					default:
						t.Fatal(err)
					}
				}
			}
			if s := h.Status(); answered == 0 || holes == 0 || len(s.Holes) == 0 {
				t.Errorf("%d answered, %d not; %+v", answered, holes, s)
			}
		})
	}
}
