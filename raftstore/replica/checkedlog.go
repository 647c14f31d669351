package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/replica/logtail"
	"github.com/setpoint-io/setpoint/raftstore/replica/trim"
)

const (
	checksumBytes = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

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

	// last is the index of the newest entry, 0 if there is none.
	last atomic.Uint64

	// trimming is the beginning that is on its way out.
	trimming trim.Beginning

	// grown is how many bytes were appended since the last snapshot, count how
	// many entries.
	grown, count atomic.Int64
	// full gets a value when grown passes growLimit.
	full      chan struct{}
	growLimit atomic.Int64
	// limit is the most that drawLimit makes of growLimit.
	limit int64
}

var _ raft.LogStore = (*checkedLog)(nil)

func newCheckedLog(inner raft.LogStore, guard *diskGuard, limit int64) *checkedLog {
	c := &checkedLog{inner: inner, guard: guard, limit: limit, full: make(chan struct{}, 1), grew: func(int64) {}}
	c.drawLimit()
	return c
}

// drawLimit chooses how far the log may grow to its next snapshot: from half the limit to
// all of it. Replicas, whose logs are the same, would else write their snapshots at the
// same time, and every commit wait for a busy disk; a quorum of others is rarely busy.
func (c *checkedLog) drawLimit() {
	c.growLimit.Store(c.limit - rand.Int64N(c.limit/2+1))
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
		sealed[i] = seal(l)
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
	return c.DeleteRange(first, last)
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
	if stored.Index != index || !unseal(&stored) {
		return fmt.Errorf("%w: log entry %d has a wrong checksum", ErrCorrupt, index)
	}
	*out = stored
	return nil
}

// DeleteRange implements raft.LogStore. What remains is without gaps at every
// moment: a beginning is deleted upwards, an end downwards. Of a beginning the most
// goes later, with the appends that need its pages.
func (c *checkedLog) DeleteRange(low, high uint64) error {
	first, err := c.FirstIndex()
	if err != nil {
		return err
	}
	c.tail.Delete(low, high)
	upwards := low <= first
	if last := c.last.Load(); high >= last {
		c.last.Store(low - 1)
		if upwards {
			c.last.Store(0)
		}
	} else if upwards {
		return c.trimming.Begin(first, high, c.growLimit.Load(), c.deleteNow)
	}
	c.trimming.Forget()
	return c.deleteSlices(low, high, upwards)
}

func (c *checkedLog) deleteSlices(low, high uint64, upwards bool) error {
	for low <= high {
		from, to := low, high
		if upwards {
			to = min(high, low+trim.SliceEntries-1)
			low = to + 1
		} else {
			from = max(low, high-min(high, trim.SliceEntries-1))
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

// seal returns a copy with the checksum behind its extensions.
func seal(l *raft.Log) *raft.Log {
	sealed := *l
	sealed.Extensions = make([]byte, 0, len(l.Extensions)+checksumBytes)
	sealed.Extensions = append(sealed.Extensions, l.Extensions...)
	sealed.Extensions = binary.LittleEndian.AppendUint32(sealed.Extensions, entrySum(l))
	return &sealed
}

// unseal takes the checksum off again and reports whether it was there and right.
func unseal(l *raft.Log) bool {
	n := len(l.Extensions) - checksumBytes
	if n < 0 {
		return false
	}
	sum := binary.LittleEndian.Uint32(l.Extensions[n:])
	l.Extensions = l.Extensions[:n:n]
	if n == 0 {
		l.Extensions = nil
	}
	return sum == entrySum(l)
}

// entrySum covers what raft and the state depend on.
func entrySum(l *raft.Log) uint32 {
	var head [21]byte
	binary.LittleEndian.PutUint64(head[0:], l.Index)
	binary.LittleEndian.PutUint64(head[8:], l.Term)
	head[16] = byte(l.Type)
	binary.LittleEndian.PutUint32(head[17:], uint32(len(l.Data)))
	sum := crc32.Checksum(head[:], castagnoli)
	sum = crc32.Update(sum, castagnoli, l.Data)
	return crc32.Update(sum, castagnoli, l.Extensions)
}
