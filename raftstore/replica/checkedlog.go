package replica

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/replica/entrysum"
	"github.com/setpoint-io/setpoint/raftstore/replica/logtail"
	"github.com/setpoint-io/setpoint/raftstore/replica/logtrim"
)

// checkedLog adds to a log store what it lacks: a checksum over every entry, kept
// behind the entry's extensions; a cache of the newest entries, bounded in bytes;
// deletion in slices; and the disk guard.
type checkedLog struct {
	inner raft.LogStore
	guard *diskGuard
	tail  logtail.Tail
	// grew is told how many bytes were appended.
	grew func(bytes int64)
	// afterWrite runs after a write and before it is reported done.
	afterWrite func() error
	// committed is the last index known to be committed. No leader may have it or what
	// is before it deleted as the end of the log.
	committed func() uint64

	// last is the index of the newest entry, 0 if there is none.
	last atomic.Uint64

	// sliced: the log is deleted in slices, and its beginning while it grows. Segments are removed at once.
	sliced bool
	// trimming is the beginning that is on its way out.
	trimming logtrim.Beginning

	// grown is how many bytes were appended since the last snapshot, count how
	// many entries.
	grown, count atomic.Int64
	// full gets a value when grown passes growLimit.
	full      chan struct{}
	growLimit atomic.Int64
	// limit is the most that drawLimit makes of growLimit while stateBytes is smaller, limitMax the most that it ever makes.
	limit, limitMax int64
	// stateBytes is about what a snapshot takes.
	stateBytes func() int64
}

var _ raft.LogStore = (*checkedLog)(nil)

func newCheckedLog(inner raft.LogStore, guard *diskGuard, limit int64) *checkedLog {
	c := &checkedLog{inner: inner, guard: guard, limit: limit, limitMax: limit, full: make(chan struct{}, 1), grew: func(int64) {},
		committed: func() uint64 { return 0 }, stateBytes: func() int64 { return 0 }}
	c.drawLimit()
	return c
}

// drawLimit chooses how far the log may grow to its next snapshot: from half the limit to
// all of it. Replicas, whose logs are the same, would else write their snapshots at the
// same time, and every commit wait for a busy disk; a quorum of others is rarely busy. A log
// as large as the state costs no more to write again, as a snapshot, than it cost itself: smaller ones of a large
// state would write it over and over.
func (c *checkedLog) drawLimit() {
	limit := max(c.limit, min(c.stateBytes(), c.limitMax))
	c.growLimit.Store(limit - rand.Int64N(limit/2+1))
}

// FirstIndex implements raft.LogStore.
func (c *checkedLog) FirstIndex() (uint64, error) { return c.bound(c.inner.FirstIndex) }

// LastIndex implements raft.LogStore.
func (c *checkedLog) LastIndex() (uint64, error) { return c.bound(c.inner.LastIndex) }

func (c *checkedLog) bound(read func() (uint64, error)) (index uint64, err error) {
	err = caught(func() (err error) {
		index, err = read()
		return err
	})
	if errors.Is(err, ErrCorrupt) {
		c.guard.fail(err)
	}
	return index, err
}

// StoreLog implements raft.LogStore.
func (c *checkedLog) StoreLog(l *raft.Log) error { return c.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore. Raft goes on using the entries, so the
// checksum goes into copies.
func (c *checkedLog) StoreLogs(logs []*raft.Log) error {
	sealed := make([]*raft.Log, len(logs))
	var size int64
	for i, l := range logs {
		sealed[i] = entrysum.Seal(l)
		size += logtail.EntryBytes(l)
	}
	if err := c.closeGap(logs[0].Index); err != nil {
		return err
	}
	err := c.guard.write("log append", func() error {
		if err := c.inner.StoreLogs(sealed); err != nil || c.afterWrite == nil {
			return err
		}
		return c.afterWrite()
	})
	if err != nil {
		return err
	}
	c.last.Store(logs[len(logs)-1].Index)
	c.tail.Append(logs)
	c.count.Add(int64(len(logs)))
	if err := c.trimming.Appended(size, c.deleteNow); err != nil {
		return err
	}
	c.grew(size)
	if c.grown.Add(size) > c.growLimit.Load() {
		c.askCompaction()
	}
	return nil
}

// askCompaction lets compact run, unless it was asked already.
func (c *checkedLog) askCompaction() {
	notify(c.full)
}

// closeGap deletes the log when the next entry does not follow it. Raft leaves such
// a gap after a snapshot that it was sent, which then holds all that was before; but
// in a log with gaps a lost entry would not be noticed.
func (c *checkedLog) closeGap(next uint64) error {
	last := c.last.Load()
	if last == 0 || next <= last+1 {
		return nil
	}
	first, err := c.FirstIndex()
	if err != nil {
		return err
	}
	return c.remove(first, first, last)
}

// GetLog implements raft.LogStore. An entry that is not what was stored stops the
// replica: it must not reach the state, nor another replica.
func (c *checkedLog) GetLog(index uint64, out *raft.Log) error {
	if c.tail.Get(index, out) {
		return nil
	}
	err := c.read(index, out)
	if errors.Is(err, ErrCorrupt) {
		c.guard.fail(err)
	}
	return err
}

func (c *checkedLog) read(index uint64, out *raft.Log) error {
	var stored raft.Log
	err := caught(func() error { return c.inner.GetLog(index, &stored) })
	if errors.Is(err, raft.ErrLogNotFound) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w: log entry %d: %w", ErrCorrupt, index, err)
	}
	if stored.Index != index || !entrysum.Unseal(&stored) {
		return fmt.Errorf("%w: log entry %d has a wrong checksum", ErrCorrupt, index)
	}
	*out = stored
	return nil
}

// beganAgain says which entry of a leader is another than the one that is here under the
// same index and term, or nil. Raft takes them for equal; they are not if servers that were put
// back to an earlier state have begun the term again.
func (c *checkedLog) beganAgain(entries []*raft.Log) error {
	last := c.last.Load()
	for _, l := range entries {
		var own raft.Log
		if l.Index > last {
			return nil
		}
		if c.GetLog(l.Index, &own) != nil || own.Term != l.Term || entrysum.Same(&own, l) {
			continue
		}
		if mark := c.committed(); l.Index <= mark {
			return committedLost(l.Index, mark)
		}
		return fmt.Errorf("%w: the leader has another entry at %d, in the same term %d", ErrDiverged, l.Index, l.Term)
	}
	return nil
}

// committedLost says that the leader has other entries in the place of committed ones.
func committedLost(from, mark uint64) error {
	return fmt.Errorf("%w: the leader has other entries from %d on, and up to %d they are known to be committed", ErrCommittedLost, from, mark)
}

// DeleteRange implements raft.LogStore. What remains is without gaps at every
// moment: a beginning is deleted upwards, an end downwards. Of a beginning the most
// goes later, with the appends that need its pages.
func (c *checkedLog) DeleteRange(low, high uint64) error {
	first, err := c.FirstIndex()
	if err != nil {
		return err
	}
	// Raft compacts the beginning and always leaves some entries: what reaches the end
	// is there because a leader has other entries in their place.
	if mark := c.committed(); high >= c.last.Load() && low <= mark {
		err := committedLost(low, mark)
		c.guard.fail(err)
		return err
	}
	return c.remove(first, low, high)
}

// remove deletes entries of a log that begins at first.
func (c *checkedLog) remove(first, low, high uint64) error {
	c.tail.Delete(low, high)
	upwards := low <= first
	if last := c.last.Load(); high >= last {
		c.last.Store(low - 1)
		if upwards {
			c.last.Store(0)
		}
	} else if upwards && c.sliced {
		return c.trimming.Begin(first, high, c.growLimit.Load(), c.deleteNow)
	}
	if !c.sliced {
		return c.deleteNow(low, high)
	}
	c.trimming.Forget()
	return c.deleteSlices(low, high, upwards)
}

func (c *checkedLog) deleteSlices(low, high uint64, upwards bool) error {
	for low <= high {
		from, to := low, high
		if upwards {
			to = min(high, low+logtrim.SliceEntries-1)
			low = to + 1
		} else {
			from = max(low, high-min(high, logtrim.SliceEntries-1))
			high = from - 1
		}
		if err := c.deleteNow(from, to); err != nil {
			return err
		}
	}
	return nil
}

func (c *checkedLog) deleteNow(from, to uint64) error {
	return c.guard.write("log deletion", func() error { return c.inner.DeleteRange(from, to) })
}

// verifyAll reads every entry once and keeps the newest in the cache. The log must
// join the snapshot, if there is one.
func (c *checkedLog) verifyAll(snapshotIndex uint64) error {
	first, err := c.FirstIndex()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	last, err := c.LastIndex()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if first > last || (first == 0) != (last == 0) {
		return fmt.Errorf("%w: log from %d to %d", ErrCorrupt, first, last)
	}
	if first > snapshotIndex+1 {
		return fmt.Errorf("%w: log begins at %d, snapshot ends at %d", ErrCorrupt, first, snapshotIndex)
	}
	for index := first; index != 0 && index <= last; index++ {
		entry := new(raft.Log)
		if err := c.read(index, entry); err != nil {
			// Raft writes without gaps, so a missing entry is damage too.
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		c.last.Store(index)
		c.tail.Append([]*raft.Log{entry})
		if index > snapshotIndex {
			c.grown.Add(logtail.EntryBytes(entry))
			c.count.Add(1)
		}
	}
	return nil
}
