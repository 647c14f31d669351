package replica

import (
	"maps"

	"github.com/hashicorp/raft"
)

// memoryLog is the log of a Memory. The zero value is empty. Entries are never changed.
type memoryLog struct {
	entries map[uint64]*raft.Log
	// first and last are the bounds of what is there, 0 if there is nothing.
	first, last uint64
}

func (l *memoryLog) put(e *raft.Log) {
	if l.entries == nil {
		l.entries = map[uint64]*raft.Log{}
	}
	if len(l.entries) == 0 {
		l.first = e.Index
	}
	l.entries[e.Index] = e
	l.first, l.last = min(l.first, e.Index), max(l.last, e.Index)
}

// deleteRange deletes the entries from low to high, both included: a beginning or an end of the log.
func (l *memoryLog) deleteRange(low, high uint64) {
	low, high = max(low, l.first), min(high, l.last)
	for i := low; i <= high && len(l.entries) > 0; i++ {
		delete(l.entries, i)
	}
	switch {
	case len(l.entries) == 0:
		l.first, l.last = 0, 0
	case low == l.first:
		l.first = high + 1
	case high == l.last:
		l.last = low - 1
	}
}

// cutAfter deletes what is behind an index.
func (l *memoryLog) cutAfter(index uint64) {
	if index < l.last {
		l.deleteRange(index+1, l.last)
	}
}

func (l *memoryLog) clone() memoryLog {
	return memoryLog{entries: maps.Clone(l.entries), first: l.first, last: l.last}
}
