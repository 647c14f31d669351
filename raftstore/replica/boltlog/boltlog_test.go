package boltlog

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
)

func open(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(path, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func newStore(t testing.TB) *Store { return open(t, filepath.Join(t.TempDir(), "raft.db")) }

func entry(index uint64, dataBytes int) *raft.Log {
	l := &raft.Log{Index: index, Term: 3, Type: raft.LogCommand, Extensions: []byte{1, 2, 3, 4}, AppendedAt: time.Unix(9, 7)}
	if dataBytes > 0 {
		l.Data = bytes.Repeat([]byte{byte(index), byte(index >> 8), 7}, dataBytes/3+1)[:dataBytes]
	}
	return l
}

func store(t testing.TB, s *Store, logs ...*raft.Log) {
	t.Helper()
	if err := s.StoreLogs(logs); err != nil {
		t.Fatal(err)
	}
}

// holds checks that the log is these entries and no others.
func holds(t *testing.T, s *Store, want ...*raft.Log) {
	t.Helper()
	first, err := s.FirstIndex()
	last, err2 := s.LastIndex()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if len(want) == 0 {
		if first != 0 || last != 0 {
			t.Fatalf("holds %d to %d, want nothing", first, last)
		}
		return
	}
	if first != want[0].Index || last != want[len(want)-1].Index {
		t.Fatalf("holds %d to %d, want %d to %d", first, last, want[0].Index, want[len(want)-1].Index)
	}
	for _, w := range want {
		var got raft.Log
		if err := s.GetLog(w.Index, &got); err != nil {
			t.Fatalf("entry %d: %v", w.Index, err)
		}
		if !reflect.DeepEqual(*w, got) {
			t.Fatalf("entry %d with %d bytes is another, with %d", w.Index, len(w.Data), len(got.Data))
		}
	}
}

func TestEntriesOfEverySize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raft.db")
	s := open(t, path)
	var want []*raft.Log
	for _, size := range []int{0, 1, 1000, chunkBytes - 40, chunkBytes - 20, chunkBytes - 10, chunkBytes, chunkBytes + 1, 2 * chunkBytes, 2*chunkBytes + 1, 300_000, 5 << 20} {
		want = append(want, entry(uint64(100+len(want)), size))
	}
	want = append(want, &raft.Log{Index: want[len(want)-1].Index + 1, Type: raft.LogNoop})
	for i := chunkBytes - 2*headBytes; i < chunkBytes+2; i++ {
		want = append(want, entry(want[len(want)-1].Index+1, i))
	}
	store(t, s, want[:5]...)
	store(t, s, want[5:]...)
	holds(t, s, want...)
	if err := s.GetLog(99, &raft.Log{}); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("an entry before the first: %v", err)
	}
	s.Close()
	holds(t, open(t, path), want...)
}

func TestDeleting(t *testing.T) {
	s := newStore(t)
	var all []*raft.Log
	for i := range uint64(60) {
		all = append(all, entry(i+1, int(i%7)*3000))
	}
	store(t, s, all...)
	for _, c := range []struct{ low, high, first, end uint64 }{{1, 9, 9, 60}, {51, 60, 9, 50}, {10, 10, 10, 50}, {49, 99, 10, 48}} {
		if err := s.DeleteRange(c.low, c.high); err != nil {
			t.Fatal(err)
		}
		holds(t, s, all[c.first:c.end]...)
	}
	if err := s.DeleteRange(0, 1000); err != nil {
		t.Fatal(err)
	}
	holds(t, s)
}

func TestAnEntryReplacesALongerOne(t *testing.T) {
	s := newStore(t)
	store(t, s, entry(1, 10), entry(2, 50_000), entry(3, 60_000), entry(4, 1))
	store(t, s, entry(2, 100), entry(3, 5))
	holds(t, s, entry(1, 10), entry(2, 100), entry(3, 5), entry(4, 1))
}

// oldForm is an entry as hashicorp/raft-boltdb 2.3.1 wrote it.
func oldForm(t *testing.T, l *raft.Log) []byte {
	t.Helper()
	var b bytes.Buffer
	handle := codec.MsgpackHandle{BasicHandle: codec.BasicHandle{TimeNotBuiltin: true}}
	if err := codec.NewEncoder(&b, &handle).Encode(l); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// goldenOldForm is oldForm(entry(1, 5)), so that no library can change both sides.
const goldenOldForm = "86aa417070656e6465644174af010000000e7791f709000000070000a444617461a50100070100" +
	"aa457874656e73696f6e73a401020304a5496e64657801a45465726d03a45479706500"

func TestALogOfTheOldFormIsRead(t *testing.T) {
	if got := hex.EncodeToString(oldForm(t, entry(1, 5))); got != goldenOldForm {
		t.Errorf("the old form is now %s", got)
	}
	s := newStore(t)
	var want []*raft.Log
	err := s.conn.Update(func(tx *bbolt.Tx) error {
		for i := range uint64(20) {
			want = append(want, entry(i+1, int(i)*1000))
			key := binary.BigEndian.AppendUint64(nil, i+1)
			if err := tx.Bucket([]byte("logs")).Put(key, oldForm(t, want[i])); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	holds(t, s, want...)
	want = append(want, entry(21, 20_000), entry(22, 10))
	store(t, s, want[20:]...)
	holds(t, s, want...)
	if err := s.DeleteRange(1, 15); err != nil {
		t.Fatal(err)
	}
	holds(t, s, want[15:]...)
}

func TestMalformedEntriesAreErrors(t *testing.T) {
	whole := appendHead(nil, entry(1, 0))
	for n := range len(whole) {
		if err := decode(1, [][]byte{whole[:n]}, &raft.Log{}); err == nil {
			t.Errorf("%d of %d bytes were read", n, len(whole))
		}
	}
	for _, first := range [][]byte{{2, 0}, {0, 0}, {0x86, 0xff}} {
		if err := decode(1, [][]byte{first}, &raft.Log{}); err == nil {
			t.Errorf("%x was read", first)
		}
	}
}

func TestStableValues(t *testing.T) {
	s := newStore(t)
	if _, err := s.Get([]byte("a")); err == nil || err.Error() != "not found" {
		t.Errorf("raft does not know the error %v", err)
	}
	if err := errors.Join(s.Set([]byte("a"), []byte("b")), s.SetUint64([]byte("n"), 7)); err != nil {
		t.Fatal(err)
	}
	value, err := s.Get([]byte("a"))
	n, err2 := s.GetUint64([]byte("n"))
	if string(value) != "b" || n != 7 || errors.Join(err, err2) != nil {
		t.Errorf("%q, %d: %v", value, n, errors.Join(err, err2))
	}
}

// A commit writes little more than its entry: of the last entries only some chunks
// again, and the pages above them.
func TestACommitWritesLittleMoreThanItsEntry(t *testing.T) {
	const entryBytes, commits, moreBytes = 25_000, 50, 36 << 10
	s := newStore(t)
	written := func() int64 { stats := s.conn.Stats(); return stats.TxStats.GetPageAlloc() }
	store(t, s, entry(1, entryBytes))
	before := written()
	for i := range uint64(commits) {
		store(t, s, entry(i+2, entryBytes))
	}
	if each := (written() - before) / commits; each > entryBytes+moreBytes {
		t.Errorf("a commit writes %d bytes for an entry of %d", each, entryBytes)
	} else {
		t.Logf("a commit writes %d bytes for an entry of %d", each, entryBytes)
	}
}

// The free room is asked for while the log grows. With the race detector this fails if
// the answer looks at what a commit changes.
func TestFreeBytesBesideCommits(t *testing.T) {
	s := newStore(t)
	done := make(chan struct{})
	asked := make(chan int64)
	go func() {
		defer close(asked)
		for {
			select {
			case asked <- s.FreeBytes():
			case <-done:
				return
			}
		}
	}()
	for i := range uint64(40) {
		store(t, s, entry(i+1, 50_000))
		if free := <-asked; free < 0 {
			t.Fatalf("%d bytes are free", free)
		}
	}
	close(done)
	if err := s.DeleteRange(1, 20); err != nil {
		t.Fatal(err)
	}
	store(t, s, entry(41, 10))
	if free := s.FreeBytes(); free < 20*50_000 {
		t.Errorf("%d bytes are free after half of the log was deleted", free)
	}
}
