package replica

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// BenchmarkLog appends entries to a log that was filled and half deleted before, as
// after a snapshot. ns/op is for one entry on the disk.
func BenchmarkLog(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10, 64 << 10, 256 << 10} {
		b.Run(fmt.Sprintf("entry=%dKiB", size>>10), func(b *testing.B) {
			log, next := usedLog(b)
			data := make([]byte, size)
			for b.Loop() {
				if err := log.StoreLog(&raft.Log{Index: next, Term: 1, Data: data}); err != nil {
					b.Fatal(err)
				}
				next++
			}
			b.SetBytes(int64(size))
		})
	}
}

// usedLog returns a log and the index of its next entry.
func usedLog(b *testing.B) (log *checkedLog, next uint64) {
	b.Helper()
	const filledBytes, entryBytes = 128 << 20, 256 << 10
	storage, err := OpenFiles(b.Context(), b.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { storage.Close() })
	guard := &diskGuard{fail: func(err error) { b.Error(err) }, limit: time.Minute}
	log = newCheckedLog(storage.logs, guard, filledBytes/2)
	data := make([]byte, entryBytes)
	for next = 1; next <= filledBytes/entryBytes; next++ {
		if err := log.StoreLog(&raft.Log{Index: next, Term: 1, Data: data}); err != nil {
			b.Fatal(err)
		}
	}
	if err := log.DeleteRange(1, next/2); err != nil {
		b.Fatal(err)
	}
	return log, next
}
