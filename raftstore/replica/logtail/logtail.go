package logtail

import (
	"sync"

	"github.com/hashicorp/raft"
)

// limitBytes bounds the entries kept in memory for followers a little behind.
const limitBytes = 32 << 20

// Tail holds the newest entries of the log, without gaps. Unlike the library's
// cache it is bounded in bytes and survives compaction. The zero value is empty; any
// goroutine may call it.
type Tail struct {
	mu      sync.RWMutex
	entries []*raft.Log
	bytes   int64
}

// Append adds entries; one that does not follow the last starts the tail anew.
func (t *Tail) Append(logs []*raft.Log) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range logs {
		if n := len(t.entries); n > 0 && t.entries[n-1].Index+1 != l.Index {
			t.entries, t.bytes = nil, 0
		}
		t.entries = append(t.entries, l)
		t.bytes += EntryBytes(l)
	}
	for t.bytes > limitBytes && len(t.entries) > 1 {
		t.dropFirst()
	}
}

func (t *Tail) dropFirst() {
	t.bytes -= EntryBytes(t.entries[0])
	t.entries[0] = nil
	t.entries = t.entries[1:]
}

// Get reports whether the tail has the entry, and puts it into out.
func (t *Tail) Get(index uint64, out *raft.Log) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.entries) == 0 || index < t.entries[0].Index {
		return false
	}
	i := index - t.entries[0].Index
	if i >= uint64(len(t.entries)) {
		return false
	}
	*out = *t.entries[i]
	return true
}

// Delete forgets the range. An end may be cut off; anything else empties the
// tail up to high.
func (t *Tail) Delete(low, high uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.entries) > 0 && t.entries[0].Index >= low && t.entries[0].Index <= high {
		t.dropFirst()
	}
	for n := len(t.entries); n > 0 && t.entries[n-1].Index >= low && t.entries[n-1].Index <= high; n-- {
		t.bytes -= EntryBytes(t.entries[n-1])
		t.entries[n-1] = nil
		t.entries = t.entries[:n-1]
	}
}

// EntryBytes is about what an entry takes in the database.
func EntryBytes(l *raft.Log) int64 {
	const overhead = 64
	return int64(len(l.Data)+len(l.Extensions)) + overhead
}
