package segments

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/raft"
)

// small is a log of a few kilobytes in a file that is cut to its used part, so that each byte can be tried.
func small(t *testing.T, closed bool) (content []byte, used int64) {
	t.Helper()
	dir := t.TempDir()
	l := open(t, dir)
	fill(t, l, 1, 4, 40, 2)
	if err := l.DeleteRange(4, 4); err != nil {
		t.Fatal(err)
	}
	fill(t, l, 2, 8, 40, 3)
	if closed {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(segmentPath(dir, 1))
	if err != nil {
		t.Fatal(err)
	}
	return content, l.newest().used
}

// opened opens a log of one file with this content.
func opened(t *testing.T, content []byte) (*Log, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(segmentPath(dir, 1), content, fileMode); err != nil {
		t.Fatal(err)
	}
	l, err := openOn(dir, testDisk)
	if err == nil {
		t.Cleanup(func() { l.Close() })
	}
	return l, err
}

// TestEveryFlippedByte is noticed, or is where nothing stands. Of a log that was not closed the last append may look
// like one that a crash broke off.
func TestEveryFlippedByte(t *testing.T) {
	for _, closed := range []bool{true, false} {
		content, used := small(t, closed)
		refused, cut := 0, 0
		for at := range used + 100 {
			if at > 150 && at < headerBytes-5 {
				continue // all alike
			}
			content[at] ^= 0x41
			l, err := opened(t, content)
			content[at] ^= 0x41
			if err != nil {
				if !errors.Is(err, ErrDamaged) {
					t.Fatalf("byte %d: %v", at, err)
				}
				refused++
				continue
			}
			_, terms := held(t, l)
			whole := slices.Equal(terms, []uint64{1, 1, 1, 2, 2, 2, 2, 2})
			switch {
			case !whole && (closed || len(terms) < 6 || !slices.Equal(terms[:6], []uint64{1, 1, 1, 2, 2, 2})):
				t.Errorf("closed %v: byte %d of %d changed the log to %v", closed, at, used, terms)
			case !whole:
				cut++
			}
		}
		if refused < int(used)-headerBytes-500 || closed == (cut > 0) {
			t.Errorf("closed %v: %d refused, %d cut of %d", closed, refused, cut, used)
		}
	}
}

func TestEveryLength(t *testing.T) {
	content, used := small(t, true)
	for at := int64(0); at < used+100; at += 7 {
		if _, err := opened(t, content[:at]); !errors.Is(err, ErrDamaged) {
			t.Errorf("cut at %d: %v", at, err)
		}
	}
	if _, err := opened(t, append(bytes.Clone(content), 0)); !errors.Is(err, ErrDamaged) {
		t.Errorf("longer: %v", err)
	}
}

// TestACrashInAnAppend leaves any of its sectors on the disk. What was appended before is there, of it a beginning; and
// what is appended then is all that follows.
func TestACrashInAnAppend(t *testing.T) {
	const sector = 512
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 400 {
		dir := t.TempDir()
		l := open(t, dir)
		fill(t, l, 1, 3, 300, 1)
		before, err := os.ReadFile(segmentPath(dir, 1))
		if err != nil {
			t.Fatal(err)
		}
		begin := l.newest().used
		fill(t, l, 2, 3+2+random.Uint64N(5), 100+random.IntN(900), 10)
		content, err := os.ReadFile(segmentPath(dir, 1))
		if err != nil {
			t.Fatal(err)
		}
		lost := 0
		for at := begin &^ (sector - 1); at < l.newest().used; at += sector {
			if random.IntN(3) == 0 {
				copy(content[at:at+sector], before[at:at+sector])
				lost++
			}
		}
		crashed, err := opened(t, content)
		if err != nil {
			t.Fatalf("round %d, %d sectors lost: %v", round, lost, err)
		}
		_, terms := held(t, crashed)
		if len(terms) < 3 || !slices.Equal(terms[:3], []uint64{1, 1, 1}) || slices.Contains(terms[3:], 1) {
			t.Fatalf("round %d: the terms %v", round, terms)
		}
		// A new leader's entries, of the same sizes in half of the rounds: nothing of the broken append joins them.
		want := append(terms, 3)
		size := 100 + random.IntN(900)
		if len(terms) > 3 || random.IntN(2) == 0 {
			var e raft.Log
			if err := l.GetLog(uint64(4), &e); err == nil {
				size = len(e.Data)
			}
		}
		fill(t, crashed, 3, uint64(len(want)), size, 1)
		wantHeld(t, reopen(t, crashed.dir), 1, want...)
	}
}

// TestSegmentsThatAreNotInTheirPlace: lost, doubled, renamed, of another log.
func TestSegmentsThatAreNotInTheirPlace(t *testing.T) {
	make := func(t *testing.T) string {
		dir := t.TempDir()
		l := open(t, dir)
		fill(t, l, 1, 40, 3000, 1)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	copyFile := func(t *testing.T, from, to string) {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, fileMode); err != nil {
			t.Fatal(err)
		}
	}
	for name, change := range map[string]func(t *testing.T, dir string){
		"missing":  func(t *testing.T, dir string) { os.Remove(segmentPath(dir, 2)) },
		"doubled":  func(t *testing.T, dir string) { copyFile(t, segmentPath(dir, 1), segmentPath(dir, 2)) },
		"renamed":  func(t *testing.T, dir string) { os.Rename(segmentPath(dir, 4), segmentPath(dir, 5)) },
		"foreign":  func(t *testing.T, dir string) { copyFile(t, segmentPath(make(t), 2), segmentPath(dir, 2)) },
		"swapped":  func(t *testing.T, dir string) { copyFile(t, segmentPath(dir, 3), segmentPath(dir, 2)) },
		"emptied":  func(t *testing.T, dir string) { os.Truncate(segmentPath(dir, 2), 0) },
		"followed": func(t *testing.T, dir string) { copyFile(t, segmentPath(make(t), 4), segmentPath(dir, 5)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := make(t)
			change(t, dir)
			if l, err := openOn(dir, testDisk); !errors.Is(err, ErrDamaged) {
				t.Errorf("open: %v", err)
				if err == nil {
					l.Close()
				}
			}
		})
	}
}

// TestACrashBetweenSegments: in each state between the end of one and the first entry of the next.
func TestACrashBetweenSegments(t *testing.T) {
	for name, step := range map[string]func(l *Log) error{
		"ended":  func(l *Log) error { return l.newest().mark(kindEnd, 0) },
		"making": func(l *Log) error { return os.WriteFile(filepath.Join(l.dir, makingName), []byte("half"), fileMode) },
		"made": func(l *Log) error {
			if err := l.newest().mark(kindEnd, 0); err != nil {
				return err
			}
			made, err := l.maker.make(header{log: l.name, number: 2, bytes: testDisk.first})
			if err != nil {
				return err
			}
			return errors.Join(l.maker.place(made), made.file.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := open(t, dir)
			fill(t, l, 1, 3, 100, 1)
			if err := step(l); err != nil {
				t.Fatal(err)
			}
			crashed := reopen(t, dir)
			fill(t, crashed, 2, 4, 100, 1)
			wantHeld(t, reopen(t, crashed.dir), 1, 1, 1, 1, 2)
		})
	}
}

// TestManyRestarts fill a segment with marks, and the log goes on.
func TestManyRestarts(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	fill(t, l, 1, 1, int(l.newest().room())-10*recordHeadBytes, 1)
	for i := range 30 {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = open(t, dir)
		if i%7 == 0 {
			fill(t, l, 1, uint64(2+i/7), 1, 1)
		}
	}
	wantHeld(t, l, 1, slices.Repeat([]uint64{1}, 6)...)
}

// TestEntriesOfUsersAreNoRecords: a value that holds whole records of this very log is data.
func TestEntriesOfUsersAreNoRecords(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	fill(t, l, 1, 3, 100, 1)
	content, err := os.ReadFile(segmentPath(dir, 1))
	if err != nil {
		t.Fatal(err)
	}
	for i, shift := range []int{0, 8, 16} {
		data := append(make([]byte, shift), content[headerBytes:l.newest().used]...)
		if err := l.StoreLog(&raft.Log{Index: uint64(4 + i), Term: 1, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	again := reopen(t, dir)
	if last, _ := again.LastIndex(); last != 6 {
		t.Errorf("%d entries", last)
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{200, 1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			l, err := Open(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			next := uint64(1)
			for b.Loop() {
				if err := l.StoreLog(entry(next, 1, size)); err != nil {
					b.Fatal(err)
				}
				if next++; next%4096 == 0 {
					if err := l.DeleteRange(0, next-2048); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// TestATornAppendDoesNotComeBack: of an append the first record is lost and the others are on the disk. An entry of the same size
// takes its place, and would end where they begin.
func TestATornAppendDoesNotComeBack(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	fill(t, l, 1, 1, 100, 1)
	begin := l.newest().used
	fill(t, l, 1, 4, 100, 3)
	content, err := os.ReadFile(segmentPath(dir, 1))
	if err != nil {
		t.Fatal(err)
	}
	clear(content[begin : begin+recordHeadBytes])
	torn, err := opened(t, content)
	if err != nil {
		t.Fatal(err)
	}
	wantHeld(t, torn, 1, 1)
	fill(t, torn, 2, 2, 100, 1)
	wantHeld(t, reopen(t, torn.dir), 1, 1, 2)
}

// TestWhatAFileHeldBefore is nothing of the log that it is used for again, also where a record of then would follow.
func TestWhatAFileHeldBefore(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, makingName)
	m := maker{dir: dir, disk: testDisk}
	former, err := makeSegment(path, header{number: 1, bytes: testDisk.most}, testDisk)
	if err != nil {
		t.Fatal(err)
	}
	for i := uint64(1); i <= 3; i++ {
		e := entry(i, 1, 100)
		if err := former.write(former.secret.appendRecord(nil, former.used, entryHead(e, uint32(former.used)), e.Data, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(m.place(former), m.discard([]*segment{former})); err != nil {
		t.Fatal(err)
	}
	again, err := m.make(header{number: 1, bytes: testDisk.most})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.place(again), again.file.Close()); err != nil {
		t.Fatal(err)
	}
	l := open(t, dir)
	wantHeld(t, l, 0)
	fill(t, l, 2, 1, 100, 1)
	wantHeld(t, reopen(t, dir), 1, 2)
}
