package replica

import (
	"sync"

	"github.com/hashicorp/raft"
)

// tailBytes bounds the entries kept in memory for followers a little behind.
const tailBytes = 32 << 20

// logTail holds the newest entries of the log, without gaps. Unlike the library's
// cache it is bounded in bytes and survives compaction. The zero value is empty.
type logTail struct {
	mu      sync.RWMutex
	entries []*raft.Log
	bytes   int64
}

// append adds entries; one that does not follow the last starts the tail anew.
func (t *logTail) append(logs []*raft.Log) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range logs {
		if n := len(t.entries); n > 0 && t.entries[n-1].Index+1 != l.Index {
			t.entries, t.bytes = nil, 0
		}
		t.entries = append(t.entries, l)
		t.bytes += entryBytes(l)
	}
	for t.bytes > tailBytes && len(t.entries) > 1 {
		t.dropFirst()
	}
}

func (t *logTail) dropFirst() {
	t.bytes -= entryBytes(t.entries[0])
	t.entries[0] = nil
	t.entries = t.entries[1:]
}

func (t *logTail) get(index uint64, out *raft.Log) bool {
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

// delete forgets the range. An end may be cut off; anything else empties the
// tail up to high.
func (t *logTail) delete(low, high uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.entries) > 0 && t.entries[0].Index >= low && t.entries[0].Index <= high {
		t.dropFirst()
	}
	for n := len(t.entries); n > 0 && t.entries[n-1].Index >= low && t.entries[n-1].Index <= high; n-- {
		t.bytes -= entryBytes(t.entries[n-1])
		t.entries[n-1] = nil
		t.entries = t.entries[:n-1]
	}
}
