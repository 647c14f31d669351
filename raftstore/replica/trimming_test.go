package replica

import (
	"testing"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/replica/logtrim"
)

// What a snapshot made needless goes while as much is appended, without a gap, and
// is gone when the next snapshot is due.
func TestBeginningGoesAsTheLogGrows(t *testing.T) {
	const entries, steps = 400, 8
	log, _ := newTestLog(NewMemory())
	log.growLimit.Store(steps * logtrim.StepBytes)
	size := logtrim.StepBytes * steps / entries
	next := uint64(0)
	grow := func(n int) {
		for range n {
			next++
			l := entry(next, raft.LogCommand)
			l.Data = make([]byte, size)
			if err := log.StoreLog(l); err != nil {
				t.Fatal(err)
			}
		}
	}
	first := func() uint64 {
		index, err := log.FirstIndex()
		if err != nil {
			t.Fatal(err)
		}
		return index
	}
	grow(2 * entries)
	if err := log.DeleteRange(1, entries); err != nil {
		t.Fatal(err)
	}
	for previous := uint64(1); previous <= entries; {
		now := first()
		if now == previous || now-previous > 2*entries/steps {
			t.Fatalf("from %d to %d at once", previous, now)
		}
		previous = now
		grow(entries/steps + 1)
	}
	if appended := next - 2*entries; appended > entries+entries/steps {
		t.Errorf("it took %d new entries to delete %d", appended, entries)
	}
	if got := first(); got != entries+1 {
		t.Errorf("the log begins at %d, want %d", got, entries+1)
	}
}

// A snapshot that comes early deletes at once what the one before has left.
func TestLeftOverBeginningGoesWithTheNext(t *testing.T) {
	log, _ := newTestLog(NewMemory())
	for i := uint64(1); i <= 4*logtrim.SliceEntries; i++ {
		if err := log.StoreLog(entry(i, raft.LogCommand)); err != nil {
			t.Fatal(err)
		}
	}
	log.growLimit.Store(1 << 40)
	for _, to := range []uint64{2 * logtrim.SliceEntries, 3 * logtrim.SliceEntries} {
		if err := log.DeleteRange(1, to); err != nil {
			t.Fatal(err)
		}
	}
	if first, err := log.FirstIndex(); err != nil || first != 2*logtrim.SliceEntries+2 {
		t.Errorf("the log begins at %d (%v), want %d", first, err, 2*logtrim.SliceEntries+2)
	}
	// The whole log goes at once, whatever was planned.
	if err := log.DeleteRange(1, 4*logtrim.SliceEntries); err != nil {
		t.Fatal(err)
	}
	if last, err := log.LastIndex(); err != nil || last != 0 {
		t.Errorf("the log ends at %d (%v), want none", last, err)
	}
}

// A log may grow by half its limit at least, and by all of it at most, from its first entry on.
func TestALogGrowsBeforeItsFirstSnapshot(t *testing.T) {
	for range 100 {
		log, _ := newTestLog(NewMemory())
		if got := log.growLimit.Load(); got < 1<<19 || got > 1<<20 {
			t.Fatalf("it may grow by %d bytes, want %d to %d", got, 1<<19, 1<<20)
		}
	}
}
