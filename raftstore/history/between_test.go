package history_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/history"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/record"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

func everything(string, uint64) bool { return true }

// TestBetween: random changes; of every period, each key that changed is told with what it was at both ends, and no other.
func TestBetween(t *testing.T) {
	store := raftstoretest.NewLocal(state.Options{RingBytes: 1 << 30})
	h, _ := openHistory(t, store, t.TempDir(), nil)
	r := rand.New(rand.NewPCG(21, 22))
	for range 600 {
		write(t, store, r, 20, 3000)
	}
	events, err := store.State().Ring().Since(0)
	if err != nil {
		t.Fatal(err)
	}
	head := store.Root().Revision
	for range 20 {
		after := uint64(r.IntN(int(head)))
		until := after + uint64(r.IntN(int(head-after)+1))
		p, err := h.Between(t.Context(), history.Wanted{Prefix: "/core/", After: after, Until: until, Holds: everything, Limit: 1000})
		if err != nil || p.Left > 0 || len(p.Holes) > 0 {
			t.Fatal(err, p)
		}
		writes := map[string]int{}
		for _, e := range events {
			if e.Revision > after && e.Revision <= until {
				writes[e.Key]++
			}
		}
		for _, s := range p.Objects {
			if s.Lost || s.Large || s.Changes != writes[s.Key] {
				t.Errorf("(%d, %d] %+v, %d writes", after, until, s, writes[s.Key])
			}
			delete(writes, s.Key)
			compareEnds(t, store, s, after, until)
		}
		if len(writes) > 0 {
			t.Errorf("(%d, %d]: not told: %v", after, until, writes)
		}
	}
	p, err := h.Between(t.Context(), history.Wanted{After: 0, Until: head, Holds: everything, Limit: 5})
	if err != nil || len(p.Objects) != 5 || p.Left != 15 {
		t.Errorf("%v: %d objects and %d left", err, len(p.Objects), p.Left)
	}
}

// compareEnds compares what is told of the ends with what was.
func compareEnds(t *testing.T, store *raftstoretest.Local, s *history.Stretch, after, until uint64) {
	t.Helper()
	was, is := recordAt(t, store, s.Key, after), recordAt(t, store, s.Key, until)
	if s.Existed != (was != nil) || s.Deleted != (is == nil) {
		t.Fatalf("(%d, %d] %+v: was %v, is %v", after, until, s, was, is)
	}
	if was == nil || is == nil || was.UID != is.UID {
		return
	}
	if s.Before == nil || s.After == nil || !bytes.Equal(s.Before.Value, was.Value) || !bytes.Equal(s.After.Value, is.Value) {
		t.Errorf("(%d, %d] the values of %s differ", after, until, s.Key)
	}
}

func recordAt(t *testing.T, store *raftstoretest.Local, key string, revision uint64) *record.Record {
	t.Helper()
	root, err := store.RootAt(revision)
	if err != nil {
		t.Fatal(err)
	}
	rec, _ := root.Get(key)
	return rec
}

// TestBetweenAroundAHole: an object may have been deleted in a hole and made again behind it: that it was created is not sure. Of one that
// was there all the time nothing is missing.
func TestBetweenAroundAHole(t *testing.T) {
	store, dir := raftstoretest.NewLocal(state.Options{RingBytes: 1 << 20}), t.TempDir()
	period := func(change func()) { // each has a file of its own
		h, end := openHistory(t, store, dir, withPurges)
		change()
		if _, err := h.At(t.Context(), key(0), store.Root().Revision-1); err != nil { // it has all
			t.Fatal(err)
		}
		end()
	}
	write := func(text string) {
		putValue(t, store, "/core/pods/n/again", text)
		putValue(t, store, "/core/pods/n/kept", text)
	}
	period(func() { write("a") })
	after := store.Root().Revision
	period(func() {
		if _, err := store.Propose(t.Context(), command.Command{Ops: []command.Op{{Kind: command.Delete, Key: "/core/pods/n/again"}}}); err != nil {
			t.Fatal(err)
		}
	})
	period(func() { write("b") })
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	if err := os.Remove(files[1]); err != nil {
		t.Fatal(err)
	}
	h, _ := openHistory(t, store, dir, withPurges)
	p, err := h.Between(t.Context(), history.Wanted{Prefix: "/core/pods/", After: after, Until: store.Root().Revision, Holds: everything, Limit: 10})
	if err != nil || len(p.Holes) != 1 || len(p.Objects) != 2 {
		t.Fatal(err, p)
	}
	if again, kept := p.Objects[0], p.Objects[1]; !again.Lost || kept.Lost {
		t.Errorf("%+v %+v", again, kept)
	}
}

// TestBetweenOfLargeObjects: what objects are now counts too.
func TestBetweenOfLargeObjects(t *testing.T) {
	store := raftstoretest.NewLocal(state.Options{RingBytes: 1 << 30})
	h, _ := openHistory(t, store, t.TempDir(), nil)
	const objects, bytesEach = 50, 1 << 20
	for i := range objects {
		putValue(t, store, fmt.Sprint("/core/pods/n/", i), "small")
	}
	after := store.Root().Revision
	for i := range objects {
		putValue(t, store, fmt.Sprint("/core/pods/n/", i), strings.Repeat("x", bytesEach))
	}
	p, err := h.Between(t.Context(), history.Wanted{Prefix: "/core/", After: after, Until: store.Root().Revision, Holds: everything, Limit: 1000})
	if err != nil || len(p.Objects) != objects {
		t.Fatal(err, len(p.Objects))
	}
	bytes, large := 0, 0
	for _, s := range p.Objects {
		if s.Large {
			large++
		}
		if s.After != nil {
			bytes += len(s.After.Value)
		}
	}
	if bytes > 32<<20 || large == 0 || large == objects {
		t.Errorf("%d bytes of values, %d are left out", bytes, large)
	}
}
