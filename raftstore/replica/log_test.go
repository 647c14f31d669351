package replica

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/replica/entrysum"
	"github.com/setpoint-io/setpoint/raftstore/replica/logtail"
	"github.com/setpoint-io/setpoint/raftstore/replica/logtrim"
	"github.com/setpoint-io/setpoint/raftstore/replica/marks"
)

// newTestLog returns a checked log on memory, with the errors it stopped for.
func newTestLog(disk *Memory) (*checkedLog, *failures) {
	f := &failures{}
	log := newCheckedLog(disk.Open().logs, &diskGuard{fail: f.add, limit: 10 * time.Second}, 1<<20)
	log.sliced = true
	return log, f
}

type failures struct {
	mu   sync.Mutex
	errs []error
}

func (f *failures) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs = append(f.errs, err)
}

func (f *failures) last() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.errs) == 0 {
		return nil
	}
	return f.errs[len(f.errs)-1]
}

func entry(index uint64, kind raft.LogType) *raft.Log {
	return &raft.Log{Index: index, Term: 3, Type: kind, Data: fmt.Append(nil, "data ", index)}
}

func TestCheckedLogReturnsWhatWasStored(t *testing.T) {
	log, _ := newTestLog(NewMemory())
	var want []*raft.Log
	for i, kind := range []raft.LogType{raft.LogCommand, raft.LogNoop, raft.LogBarrier, raft.LogConfiguration} {
		want = append(want, entry(uint64(i)+1, kind))
	}
	want[2].Extensions = []byte("of another layer")
	if err := log.StoreLogs(want); err != nil {
		t.Fatal(err)
	}
	log.tail = logtail.Tail{}
	for _, w := range want {
		var got raft.Log
		if err := log.GetLog(w.Index, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(*w, got); diff != "" {
			t.Errorf("entry %d: %s", w.Index, diff)
		}
	}
}

func TestCheckedLogNoticesEveryChange(t *testing.T) {
	changes := map[string]func(*raft.Log){
		"index":       func(l *raft.Log) { l.Index++ },
		"term":        func(l *raft.Log) { l.Term++ },
		"type":        func(l *raft.Log) { l.Type = raft.LogNoop },
		"data":        func(l *raft.Log) { l.Data[0] ^= 1 },
		"shorter":     func(l *raft.Log) { l.Data = l.Data[:3] },
		"no checksum": func(l *raft.Log) { l.Extensions = nil },
		"checksum":    func(l *raft.Log) { l.Extensions[0] ^= 1 },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			disk := NewMemory()
			log, stopped := newTestLog(disk)
			if err := log.StoreLog(entry(1, raft.LogCommand)); err != nil {
				t.Fatal(err)
			}
			log.tail = logtail.Tail{}
			change(disk.logs.Entries[1])
			if err := log.GetLog(1, new(raft.Log)); !errors.Is(err, ErrCorrupt) {
				t.Errorf("read: %v", err)
			}
			if !errors.Is(stopped.last(), ErrCorrupt) {
				t.Errorf("stopped for %v", stopped.last())
			}
		})
	}
}

func TestDeleteRangeLeavesNoGap(t *testing.T) {
	const n = 3*logtrim.SliceEntries + 7
	for _, tc := range []struct {
		name      string
		low, high uint64
	}{
		{"beginning", 1, n - 100},
		{"end", 100, n},
		{"all", 1, n},
		{"one", n, n},
	} {
		t.Run(tc.name, func(t *testing.T) {
			disk := NewMemory()
			log, _ := newTestLog(disk)
			for i := uint64(1); i <= n; i++ {
				disk.logs.Put(entrysum.Seal(entry(i, raft.LogCommand)))
			}
			spy := &deleteSpy{LogStore: log.inner, t: t, disk: disk}
			log.inner = spy
			if err := log.DeleteRange(tc.low, tc.high); err != nil {
				t.Fatal(err)
			}
			if want := n - int(tc.high-tc.low+1); len(disk.logs.Entries) != want {
				t.Errorf("%d entries left, want %d", len(disk.logs.Entries), want)
			}
			if spy.largest > logtrim.SliceEntries {
				t.Errorf("deleted %d at once", spy.largest)
			}
		})
	}
}

// deleteSpy checks after each deletion that the log has no gap.
type deleteSpy struct {
	raft.LogStore
	t       *testing.T
	disk    *Memory
	largest uint64
}

func (s *deleteSpy) DeleteRange(low, high uint64) error {
	s.largest = max(s.largest, high-low+1)
	err := s.LogStore.DeleteRange(low, high)
	if first, last := s.disk.logs.First, s.disk.logs.Last; last > 0 && last-first+1 != uint64(len(s.disk.logs.Entries)) {
		s.t.Errorf("gap after deleting %d to %d", low, high)
	}
	return err
}

func TestStalledDiskStopsTheReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := NewMemory()
		log, stopped := newTestLog(disk)
		disk.SyncDelay = 11 * time.Second
		if err := log.StoreLog(entry(1, raft.LogCommand)); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(stopped.last(), ErrDiskStalled) {
			t.Errorf("stopped for %v", stopped.last())
		}
	})
}

// TestADiskThatHangsAtAMarkerStopsTheReplica: the state machine waits for some of them.
func TestADiskThatHangsAtAMarkerStopsTheReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := NewMemory()
		log, stopped := newTestLog(disk)
		r := &Replica{log: log, cfg: Config{Storage: disk.Open()}}
		disk.Stall()
		saved := make(chan error, 1)
		go func() { saved <- r.saveMark(&marks.Marker{ServerID: "server-1"}) }()
		time.Sleep(11 * time.Second)
		if !errors.Is(stopped.last(), ErrDiskStalled) {
			t.Errorf("stopped for %v", stopped.last())
		}
		disk.Resume()
		if err := <-saved; err != nil || r.marked().ServerID != "server-1" {
			t.Errorf("%v, %+v", err, r.marked())
		}
	})
}

func TestFailedDiskStopsTheReplica(t *testing.T) {
	disk := NewMemory()
	log, stopped := newTestLog(disk)
	disk.Crash()
	if err := log.StoreLog(entry(1, raft.LogCommand)); !errors.Is(err, ErrDiskFailed) {
		t.Errorf("write: %v", err)
	}
	if !errors.Is(stopped.last(), ErrDiskFailed) {
		t.Errorf("stopped for %v", stopped.last())
	}
}

func TestTrailingEntries(t *testing.T) {
	for _, tc := range []struct {
		grown, count, limit int64
		want                uint64
	}{
		{0, 0, 64 << 20, trailingEntriesMin},
		{64 << 20, 1000, 64 << 20, 1000},
		{64 << 20, 10, 64 << 20, trailingEntriesMin},
		{64 << 20, 1 << 20, 64 << 20, trailingEntriesMax},
	} {
		if got := trailingEntries(tc.grown, tc.count, tc.limit); got != tc.want {
			t.Errorf("%d bytes in %d entries: %d, want %d", tc.grown, tc.count, got, tc.want)
		}
	}
}

// A snapshot sent by the leader leaves a gap behind the entries before it. They go,
// or the gap would pass for damage at the next start.
func TestEntryAfterAGapReplacesTheLog(t *testing.T) {
	disk := NewMemory()
	log, _ := newTestLog(disk)
	for i := uint64(1); i <= 10; i++ {
		if err := log.StoreLog(entry(i, raft.LogCommand)); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.StoreLog(entry(21, raft.LogCommand)); err != nil {
		t.Fatal(err)
	}
	if first, last := disk.logs.First, disk.logs.Last; first != 21 || last != 21 {
		t.Errorf("log from %d to %d", first, last)
	}
	reopened, _ := newTestLog(disk)
	if err := reopened.verifyAll(20); err != nil {
		t.Error(err)
	}
}

func TestDeletedEndIsNoGap(t *testing.T) {
	disk := NewMemory()
	log, _ := newTestLog(disk)
	for _, i := range []uint64{1, 2, 3, 4, 5} {
		if err := log.StoreLog(entry(i, raft.LogCommand)); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.DeleteRange(4, 5); err != nil {
		t.Fatal(err)
	}
	if err := log.StoreLog(entry(4, raft.LogCommand)); err != nil {
		t.Fatal(err)
	}
	if first, last := disk.logs.First, disk.logs.Last; first != 1 || last != 4 {
		t.Errorf("log from %d to %d", first, last)
	}
}

// What a snapshot holds already asks for no other one after a restart.
func TestOpenedLogHasGrownSinceItsSnapshot(t *testing.T) {
	disk := NewMemory()
	log, _ := newTestLog(disk)
	var bytes int64
	for i := uint64(1); i <= 20; i++ {
		if err := log.StoreLog(entry(i, raft.LogCommand)); err != nil {
			t.Fatal(err)
		}
		if i > 15 {
			bytes += logtail.EntryBytes(entry(i, raft.LogCommand))
		}
	}
	reopened, _ := newTestLog(disk)
	if err := reopened.verifyAll(15); err != nil {
		t.Fatal(err)
	}
	if count, grown := reopened.count.Load(), reopened.grown.Load(); count != 5 || grown != bytes {
		t.Errorf("grown by %d entries of %d bytes, want 5 of %d", count, grown, bytes)
	}
}

// Replicas have the same log, and should not all write their snapshots at once.
func TestLogsAskForSnapshotsAtDifferentTimes(t *testing.T) {
	const logs, limit = 10, 64 << 10
	asked := map[int64]bool{}
	for range logs {
		log, _ := newTestLog(NewMemory())
		log.limit = limit
		log.drawLimit()
		for next := uint64(1); len(log.full) == 0; next++ {
			if err := log.StoreLog(entry(next, raft.LogCommand)); err != nil {
				t.Fatal(err)
			}
		}
		grown := log.grown.Load()
		asked[grown] = true
		if grown < limit/2 || grown > limit+1<<10 {
			t.Errorf("asked for a snapshot after %d bytes, limit %d", grown, limit)
		}
	}
	if len(asked) < logs/2 {
		t.Errorf("%d logs asked for snapshots after the same %v bytes", logs, asked)
	}
}

// TestEntriesOfATermThatBeganTwice: what a leader sends may be here already, or take the place
// of entries of another term; it may not differ in the same term.
func TestEntriesOfATermThatBeganTwice(t *testing.T) {
	disk := NewMemory()
	log, stopped := newTestLog(disk)
	var mark uint64
	log.committed = func() uint64 { return mark }
	for i := uint64(1); i <= 4; i++ {
		if err := log.StoreLog(entry(i, raft.LogCommand)); err != nil {
			t.Fatal(err)
		}
	}
	other := func(index, term uint64) *raft.Log {
		l := entry(index, raft.LogCommand)
		l.Term, l.Data = term, []byte("another")
		return l
	}
	own := entry(4, raft.LogCommand)
	for name, c := range map[string]struct {
		sent      []*raft.Log
		committed uint64
		want      error
	}{
		"sent again":                 {[]*raft.Log{entry(3, raft.LogCommand), own, other(5, own.Term)}, 4, nil},
		"behind the end":             {[]*raft.Log{other(5, own.Term)}, 4, nil},
		"of another term":            {[]*raft.Log{other(4, own.Term+1)}, 3, nil},
		"another":                    {[]*raft.Log{other(4, own.Term)}, 3, ErrDiverged},
		"another, behind equal ones": {[]*raft.Log{entry(3, raft.LogCommand), other(4, own.Term)}, 3, ErrDiverged},
		"in the place of committed":  {[]*raft.Log{other(4, own.Term)}, 4, ErrCommittedLost},
	} {
		t.Run(name, func(t *testing.T) {
			mark = c.committed
			if err := log.beganAgain(c.sent); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
	if err := stopped.last(); err != nil {
		t.Error(err)
	}
}

// TestAnotherEntryOfTheTermStops: it is asked before raft gets the entry.
func TestAnotherEntryOfTheTermStops(t *testing.T) {
	fatal := make(chan error, 1)
	r, err := openLone(t, t.TempDir(), func(c *Config) { c.Fatal = func(err error) { fatal <- err } })
	if err != nil {
		t.Fatal(err)
	}
	waitLeader(t, r)
	writeKey(t, r, 1)
	index, own := r.lastIndex(), raft.Log{}
	if err := r.log.GetLog(index, &own); err != nil {
		t.Fatal(err)
	}
	if err := r.refuses([]*raft.Log{&own}); err != nil || r.Failed() != nil {
		t.Errorf("its own entry: %v, %v", err, r.Failed())
	}
	other := own
	other.Data = []byte("another")
	if err := r.refuses([]*raft.Log{&other}); !errors.Is(err, ErrCommittedLost) || !errors.Is(r.Failed(), ErrCommittedLost) {
		t.Errorf("another: %v, %v", err, r.Failed())
	}
	if r.Failed() != nil {
		<-fatal
	}
}

// TestALargeStateIsWrittenAsOftenAsItGrows, within the bound: a snapshot each time that a small log is full would write
// it many times for what changed once.
func TestALargeStateIsWrittenAsOftenAsItGrows(t *testing.T) {
	log, _ := newTestLog(NewMemory())
	state := int64(0)
	log.limit, log.limitMax, log.stateBytes = 1000, 50_000, func() int64 { return state }
	for _, c := range []struct{ state, most int64 }{{0, 1000}, {900, 1000}, {20_000, 20_000}, {1 << 40, 50_000}} {
		state = c.state
		for range 20 {
			if log.drawLimit(); log.growLimit.Load() < c.most/2 || log.growLimit.Load() > c.most {
				t.Errorf("state of %d: the log grows to %d", c.state, log.growLimit.Load())
			}
		}
	}
}
