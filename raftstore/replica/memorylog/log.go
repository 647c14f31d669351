package memorylog

import (
	"maps"

	"github.com/hashicorp/raft"
)

// Log is a log in memory. The zero value is empty. Entries are never changed.
type Log struct {
	// Entries are those that are there, by index.
	Entries map[uint64]*raft.Log
	// First and Last are the bounds of what is there, 0 if there is nothing.
	First, Last uint64
}

// Put adds an entry.
func (l *Log) Put(e *raft.Log) {
	if l.Entries == nil {
		l.Entries = map[uint64]*raft.Log{}
	}
	if len(l.Entries) == 0 {
		l.First = e.Index
	}
	l.Entries[e.Index] = e
	l.First, l.Last = min(l.First, e.Index), max(l.Last, e.Index)
}

// DeleteRange deletes the entries from low to high, both included: a beginning or an end of the log.
func (l *Log) DeleteRange(low, high uint64) {
	low, high = max(low, l.First), min(high, l.Last)
	for i := low; i <= high && len(l.Entries) > 0; i++ {
		delete(l.Entries, i)
	}
	switch {
	case len(l.Entries) == 0:
		l.First, l.Last = 0, 0
	case low == l.First:
		l.First = high + 1
	case high == l.Last:
		l.Last = low - 1
	}
}

// CutAfter deletes what is behind an index.
func (l *Log) CutAfter(index uint64) {
	if index < l.Last {
		l.DeleteRange(index+1, l.Last)
	}
}

// Clone copies the log.
func (l *Log) Clone() Log {
	return Log{Entries: maps.Clone(l.Entries), First: l.First, Last: l.Last}
}
