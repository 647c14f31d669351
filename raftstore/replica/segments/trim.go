package segments

import (
	"errors"
	"fmt"
	"slices"
)

// DeleteRange implements raft.LogStore. What is deleted is a beginning of the log, an end of it, or all. An end is gone from
// the disk when it returns. Of a beginning the files go that hold nothing else; after the next Open the entries
// that lie in one file with later ones are there again.
func (l *Log) DeleteRange(low, high uint64) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.failed != nil {
		return l.failed
	}
	if len(l.places) == 0 || high < l.first || low > l.last() || high < low {
		return nil
	}
	switch {
	case high >= l.last():
		return l.wrote(l.deleteEnd(max(low, l.first)))
	case low <= l.first:
		return l.wrote(l.deleteBeginning(high))
	}
	return fmt.Errorf("entries %d to %d are in the middle of the log", low, high)
}

// deleteEnd deletes all from an index on.
func (l *Log) deleteEnd(low uint64) error {
	if l.newest().room() < recordHeadBytes {
		if err := l.nextSegment(recordHeadBytes); err != nil {
			return err
		}
	}
	if err := l.newest().mark(kindForget, low); err != nil {
		return err
	}
	l.mu.Lock()
	l.forget(low)
	l.mu.Unlock()
	return l.dropUnused()
}

// deleteBeginning deletes all up to an index.
func (l *Log) deleteBeginning(high uint64) error {
	l.mu.Lock()
	l.places = slices.Clone(l.places[high+1-l.first:])
	l.first = high + 1
	l.mu.Unlock()
	return l.dropUnused()
}

// dropUnused removes the oldest segments, up to the one in which the log begins. The orders to forget in them are about
// entries in them, or in older ones.
func (l *Log) dropUnused() error {
	begins := l.newest()
	if len(l.places) > 0 {
		begins = l.places[0].segment
	}
	n := slices.Index(l.segments, begins)
	if n <= 0 {
		return nil
	}
	unused := l.segments[:n]
	l.mu.Lock()
	l.segments = slices.Clone(l.segments[n:])
	l.mu.Unlock()
	return l.maker.discard(unused)
}

// DropSpares removes the files that are kept to be written again.
func (l *Log) DropSpares() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	return l.maker.dropSpares()
}

// Bytes is the size of all files of the log.
func (l *Log) Bytes() (n int64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, s := range l.segments {
		n += s.bytes
	}
	return n + l.maker.bytes()
}

// RoomBytes is how much can be appended before the files grow.
func (l *Log) RoomBytes() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return max(l.newest().unwritten.Load(), 0) + l.maker.bytes()
}

// Close marks the log as closed and closes its files.
func (l *Log) Close() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	var err error
	if l.failed == nil {
		l.failed = errors.New("the log is closed")
		err = l.markClosed()
	}
	l.maker.close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.places = nil
	return errors.Join(err, closeAll(l.segments))
}

// markClosed leaves the mark, or the segment's end if there is no room for both.
func (l *Log) markClosed() error {
	s := l.newest()
	if s.room() >= recordHeadBytes {
		return s.mark(kindClosed, 0)
	}
	return s.mark(kindEnd, 0)
}
