package segments

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
)

func open(t *testing.T, dir string) *Log {
	t.Helper()
	l, err := openOn(dir, testDisk)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// noSync leaves to the operating system when bytes come to the disk: these tests do not cut its power.
func noSync(*os.File) error { return nil }

// testDisk has segments that can be tried byte by byte.
var testDisk = disk{noSync, 16 << 10, 64 << 10}

// entry is one whose data tells its index and term.
func entry(index, term uint64, size int) *raft.Log {
	data := bytes.Repeat(fmt.Appendf(nil, "%d of %d. ", index, term), size/8+1)
	return &raft.Log{Index: index, Term: term, Data: data[:size]}
}

// fill appends entries up to an index, batch of them at a time.
func fill(t *testing.T, l *Log, term, to uint64, size, batch int) {
	t.Helper()
	last, _ := l.LastIndex()
	for next := last + 1; next <= to; {
		var entries []*raft.Log
		for ; len(entries) < batch && next <= to; next++ {
			entries = append(entries, entry(next, term, size))
		}
		if err := l.StoreLogs(entries); err != nil {
			t.Fatal(err)
		}
	}
}

// held is the terms of the log's entries, which are checked to be whole.
func held(t *testing.T, l *Log) (first uint64, terms []uint64) {
	t.Helper()
	first, _ = l.FirstIndex()
	last, _ := l.LastIndex()
	for i := first; i != 0 && i <= last; i++ {
		var got raft.Log
		if err := l.GetLog(i, &got); err != nil {
			t.Fatal(err)
		}
		if want := entry(i, got.Term, len(got.Data)); !bytes.Equal(got.Data, want.Data) || got.Index != i {
			t.Fatalf("entry %d is %+v", i, got)
		}
		terms = append(terms, got.Term)
	}
	return first, terms
}

func wantHeld(t *testing.T, l *Log, first uint64, want ...uint64) {
	t.Helper()
	if got, terms := held(t, l); got != first || !slices.Equal(terms, want) {
		t.Errorf("the log begins at %d with the terms %v, want %d and %v", got, terms, first, want)
	}
}

// reopen opens a copy of the log's files, as after a crash.
func reopen(t *testing.T, dir string) *Log {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return open(t, to)
}

// settled waits until the next segment has been made ahead: meanwhile a spare file may get another name, and cannot be copied.
func settled(l *Log) {
	if l.maker.ahead != nil {
		l.maker.ahead <- <-l.maker.ahead
	}
}

func TestEntriesComeBackAsTheyWere(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	want := []*raft.Log{
		{Index: 7, Term: 3, Type: raft.LogConfiguration, Data: []byte("x"), Extensions: []byte("extensions"), AppendedAt: time.Unix(5, 6)},
		{Index: 8, Term: 3, Type: raft.LogNoop},
		{Index: 9, Term: 4, Extensions: []byte("only")},
	}
	if err := l.StoreLogs(want); err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]*Log{"open": l, "after a crash": reopen(t, dir)} {
		for _, w := range want {
			var got raft.Log
			if err := l.GetLog(w.Index, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(*w, got); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	}
	if err := l.GetLog(6, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("in front of the log: %v", err)
	}
	if err := l.GetLog(10, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("behind the log: %v", err)
	}
	if err := l.StoreLog(entry(11, 4, 1)); err == nil {
		t.Error("a gap was stored")
	}
}

func TestALogGoesOnInFurtherSegments(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	const n, size = 40, 1600
	fill(t, l, 1, n, size, 3)
	if err := l.StoreLog(entry(n+1, 1, int(testDisk.most)+1)); err != nil {
		t.Fatal(err)
	}
	fill(t, l, 1, n+5, size, 1)
	want := slices.Repeat([]uint64{1}, n+5)
	wantHeld(t, l, 1, want...)
	wantHeld(t, reopen(t, dir), 1, want...)
	if files, _ := filepath.Glob(filepath.Join(dir, "*.log")); len(files) < 4 {
		t.Errorf("%d files", len(files))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open(t, dir)
	fill(t, l, 2, n+6, size, 1)
	wantHeld(t, l, 1, append(want, 2)...)
}

func TestAnEndThatIsDeletedStaysDeleted(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	fill(t, l, 1, 8, 2000, 1) // two segments
	if err := l.DeleteRange(3, 8); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, reopen(t, dir), 1, 1, 1)
	fill(t, l, 2, 5, 2000, 2)
	wantHeld(t, l, 1, 1, 1, 2, 2, 2)
	wantHeld(t, reopen(t, dir), 1, 1, 1, 2, 2, 2)
	if err := l.DeleteRange(1, 5); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, l, 0)
	wantHeld(t, reopen(t, dir), 0)
	if err := l.StoreLog(entry(21, 3, 5)); err != nil { // behind a snapshot
		t.Fatal(err)
	}
	wantHeld(t, reopen(t, dir), 21, 3)
	if err := l.DeleteRange(4, 20); err != nil {
		t.Errorf("what is not there: %v", err)
	}
	wantHeld(t, l, 21, 3)
}

func TestABeginningGoesByFiles(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	fill(t, l, 1, 3, 3000, 1)
	if err := l.DeleteRange(3, 3); err != nil { // the order to forget is in a file that goes
		t.Fatal(err)
	}
	fill(t, l, 2, 12, 3000, 1)
	before := l.Bytes()
	if err := l.DeleteRange(1, 9); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, l, 10, 2, 2, 2)
	if l.Bytes() >= before {
		t.Errorf("%d bytes before, %d after", before, l.Bytes())
	}
	if err := l.DeleteRange(11, 11); err == nil {
		t.Error("the middle was deleted")
	}
	again := reopen(t, dir)
	first, terms := held(t, again)
	if last, _ := again.LastIndex(); first < 2 || first > 10 || last != 12 || slices.Contains(terms, 1) && first > 2 {
		t.Errorf("from %d to %d, terms %v", first, last, terms)
	}
}

// TestSegmentsOfThePastAreWrittenAgain: what they held is nothing of the log's.
func TestSegmentsOfThePastAreWrittenAgain(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	const size = 4 << 10
	for to := uint64(40); to <= 200; to += 40 {
		fill(t, l, to, to, size, 4)
		if err := l.DeleteRange(0, to-5); err != nil {
			t.Fatal(err)
		}
	}
	if kept := l.maker.kept; kept == 0 {
		t.Error("no file was kept")
	}
	if limit := (2 + spareSegmentsMax) * testDisk.most; l.Bytes() > limit {
		t.Errorf("%d bytes, want at most %d", l.Bytes(), limit)
	}
	_, want := held(t, l)
	settled(l)
	again := reopen(t, dir)
	if first, _ := again.FirstIndex(); first < 160 {
		t.Errorf("begins at %d", first)
	}
	if _, terms := held(t, again); !slices.Equal(terms[len(terms)-len(want):], want) {
		t.Errorf("ends with the terms %v, want %v", terms, want)
	}
}

// TestAFullDiskFailsTheAppendAsAWhole and the next one may succeed.
func TestAFullDiskFailsTheAppendAsAWhole(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	fill(t, l, 1, 2, 100, 1)
	var room atomic.Int64
	room.Store(20 << 10)
	l.disk.sync = func(f *os.File) error {
		if info, err := f.Stat(); err == nil && !info.IsDir() && info.Size() > room.Load() {
			return syscall.ENOSPC
		}
		return nil
	}
	l.maker.disk = l.disk
	if err := l.StoreLog(entry(3, 1, int(testDisk.first)+4<<10)); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("stored: %v", err)
	}
	if err := l.StoreLog(entry(3, 1, int(testDisk.first)-1<<10)); err != nil {
		t.Fatalf("less than there is room for: %v", err)
	}
	if err := l.DeleteRange(3, 3); err != nil {
		t.Fatal(err)
	}
	room.Store(1 << 20)
	wantHeld(t, reopen(t, dir), 1, 1, 1)
	if err := l.StoreLog(entry(3, 1, int(testDisk.first))); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, reopen(t, dir), 1, 1, 1, 1)
}

func TestAFailedWriteIsTheLast(t *testing.T) {
	l := open(t, t.TempDir())
	fill(t, l, 1, 2, 100, 1)
	l.newest().file.Close()
	if err := l.StoreLog(entry(3, 1, 100)); err == nil {
		t.Fatal("stored in a closed file")
	}
	if err := l.StoreLog(entry(3, 1, 100)); !errors.Is(err, ErrFailed) {
		t.Errorf("after a failure: %v", err)
	}
	if err := l.DeleteRange(1, 2); !errors.Is(err, ErrFailed) {
		t.Errorf("after a failure: %v", err)
	}
}

func TestAnAppendIsOneWriteAndOneSync(t *testing.T) {
	var syncs atomic.Int64
	dir := t.TempDir()
	counted := disk{func(f *os.File) error {
		if f.Name() == segmentPath(dir, 1) { // and not the one that is made ahead
			syncs.Add(1)
		}
		return nil
	}, testDisk.first, testDisk.most}
	fill(t, open(t, dir), 1, 1, 100, 1)
	l, err := openOn(dir, counted)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	syncs.Store(0)
	fill(t, l, 1, 6, 100, 5)
	if n := syncs.Load(); n != 1 {
		t.Errorf("%d syncs for an append of five entries", n)
	}
	if err := l.DeleteRange(4, 6); err != nil || syncs.Load() != 2 {
		t.Errorf("%d syncs after the end was deleted (%v)", syncs.Load(), err)
	}
	fill(t, l, 2, 4, int(l.newest().room())-recordHeadBytes-recordAlign, 1)
	if n := syncs.Load(); n != 3 {
		t.Errorf("%d syncs after a third append", n)
	}
}

// TestReadersMeetWholeEntriesWhileFilesGo: what they ask for is there as it was, or is not there any more.
func TestReadersMeetWholeEntriesWhileFilesGo(t *testing.T) {
	l := open(t, t.TempDir())
	const n, size = 400, 3000
	fill(t, l, 1, 1, size, 1)
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for i := uint64(1); ; i = i%n + 1 {
				var got raft.Log
				err := l.GetLog(i, &got)
				if err != nil && !errors.Is(err, raft.ErrLogNotFound) || err == nil && !bytes.Equal(got.Data, entry(i, 1, size).Data) {
					t.Errorf("entry %d: %v", i, err)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for to := uint64(2); to <= n; to += 5 {
		fill(t, l, 1, to, size, 2)
		if to > 60 {
			if err := l.DeleteRange(0, to-60); err != nil {
				t.Error(err)
			}
		}
	}
	close(done)
	readers.Wait()
}

// TestOpenBringsToTheDiskWhatItBuildsOn: a process that was killed may have written without waiting for the disk.
func TestOpenBringsToTheDiskWhatItBuildsOn(t *testing.T) {
	dir := t.TempDir()
	fill(t, open(t, dir), 1, 20, 2000, 1)
	synced := map[string]bool{}
	recording := disk{func(f *os.File) error { synced[f.Name()] = true; return nil }, testDisk.first, testDisk.most}
	l, err := openOn(dir, recording)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, want := range []string{segmentPath(dir, l.newest().number), dir, filepath.Dir(dir)} {
		if !synced[want] {
			t.Errorf("%s is not synced, only %v", want, synced)
		}
	}
}

// TestSegmentsOfSmallFileSystems: those that are kept to be written again leave room for snapshots.
func TestSegmentsOfSmallFileSystems(t *testing.T) {
	for total, want := range map[int64]int64{
		0: segmentBytesMax, 10 << 20: segmentBytesMin, 128 << 20: 2 << 20, 200<<20 + 1: 3 << 20, 1 << 30: segmentBytesMax, 1 << 50: segmentBytesMax,
	} {
		if got := mostBytes(total); got != want {
			t.Errorf("%d bytes: segments of %d, not %d", total, got, want)
		}
	}
	if total, err := totalBytes(t.TempDir()); err != nil || total != 0 && total < 1<<20 { // 0 but on Linux
		t.Errorf("%d bytes: %v", total, err)
	}
}

// TestFilesOfOthersStay, and what the log keeps to write it again goes when somebody needs the room.
func TestFilesOfOthersStay(t *testing.T) {
	dir := t.TempDir()
	copied := filepath.Join(dir, "0000000000000001.log.bak")
	if err := os.WriteFile(copied, nil, fileMode); err != nil {
		t.Fatal(err)
	}
	l := open(t, dir)
	fill(t, l, 1, 100, 4000, 1)
	if err := l.DeleteRange(0, 95); err != nil {
		t.Fatal(err)
	}
	before := l.Bytes()
	if err := l.DropSpares(); err != nil {
		t.Fatal(err)
	}
	if spares, _ := filepath.Glob(filepath.Join(dir, sparePrefix+"*")); len(spares) > 0 || l.Bytes() >= before {
		t.Errorf("%v are left, %d bytes of %d", spares, l.Bytes(), before)
	}
	fill(t, l, 1, 140, 4000, 1)
	reopen(t, dir)
	if _, err := os.Stat(copied); err != nil {
		t.Error(err)
	}
}

func TestASegmentNeedsItsFolder(t *testing.T) {
	s, err := makeSegment(filepath.Join(t.TempDir(), "none", "1"), header{number: 1, bytes: testDisk.most}, testDisk)
	if s != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("made %v (%v)", s, err)
	}
}
