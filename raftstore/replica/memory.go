package replica

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/replica/marks"
	"github.com/setpoint-io/setpoint/raftstore/replica/memorylog"
)

// ErrCrashed is what the storage of a crashed replica answers.
var ErrCrashed = errors.New("memory storage crashed")

// Memory is a disk in memory, for tests in fake time and clusters that need not outlive their process. What was written survives a
// crash only up to the durable mark, which a write moves when its SyncDelay is
// over; so a crash may fall between the two, as a power cut does.
type Memory struct {
	// SyncDelay is how long a write takes to become durable.
	SyncDelay time.Duration
	// StableDelay is how long it takes until a term or a vote is on the disk: a crash before finds the one before.
	StableDelay time.Duration
	// SnapshotDelay is how long the end of a snapshot takes.
	SnapshotDelay time.Duration
	// Alone says that the replica has no peers, to whom snapshots would be sent: they are states then, and are
	// neither written nor read.
	Alone bool
	// Files, if not nil, keep the log, as the product's own segments; see memorylog.Files.
	Files memorylog.Files

	mu         sync.Mutex
	generation int
	logs       memorylog.Log
	// durable is the last index that survives a crash.
	durable   uint64
	stable    map[string][]byte
	snapshots []*memorySnapshot
	mark      *marks.Marker
	water     marks.Watermark
	// space is zero for a disk without bounds.
	space Space
	// stalled is closed by Resume, nil while the disk works.
	stalled chan struct{}
	// snapshotFault is what writing a snapshot fails with, half way.
	snapshotFault error
	// segments are the log that was opened last, if Files keep it.
	segments memorylog.Turns
}

// NewMemory returns an empty disk.
func NewMemory() *Memory {
	return &Memory{stable: map[string][]byte{}}
}

// Open returns the disk's contents as a storage. Earlier ones stop working.
func (m *Memory) Open() *Storage {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.generation++
	h := &memoryHandle{disk: m, generation: m.generation}
	return &Storage{
		logs: h, stable: h, snapshots: h, marks: h,
		sizeBytes:  func() int64 { return 0 },
		freeBytes:  func() int64 { return 0 },
		sliced:     true,
		letMove:    func() error { return nil },
		dropSpares: func() error { return nil },
		closers:    []io.Closer{h},
		space:      m.measure,
	}
}

// SetSpace gives the disk a size and says how much of it is free. What is written
// does not change it.
func (m *Memory) SetSpace(s Space) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.space = s
}

// FailSnapshots makes snapshots fail half written, nil ends it.
func (m *Memory) FailSnapshots(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.snapshotFault = err
}

func (m *Memory) measure() (Space, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.space, nil
}

// Stall makes the disk hang: nothing that was begun or begins ends before Resume.
func (m *Memory) Stall() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stalled == nil {
		m.stalled = make(chan struct{})
	}
}

// SetSyncDelay changes SyncDelay while the disk is in use.
func (m *Memory) SetSyncDelay(delay time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.SyncDelay = delay
}

// Resume ends a Stall.
func (m *Memory) Resume() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stalled != nil {
		close(m.stalled)
		m.stalled = nil
	}
}

// lock takes the mutex while the disk does not hang.
func (m *Memory) lock() {
	m.mu.Lock()
	for m.stalled != nil {
		stalled := m.stalled
		m.mu.Unlock()
		<-stalled
		m.mu.Lock()
	}
}

// Crash cuts the power: what is not durable is gone, and open storages fail.
func (m *Memory) Crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.generation++
	m.logs.CutAfter(m.durable)
}

// Copy returns another disk with what is durable on this one.
func (m *Memory) Copy() *Memory {
	copied := NewMemory()
	copied.Alone = m.Alone
	copied.PutBack(m)
	return copied
}

// PutBack makes a disk what another is, as far as that is durable: an earlier Copy puts
// back what was then. Open storages fail.
func (m *Memory) PutBack(earlier *Memory) {
	earlier.mu.Lock()
	defer earlier.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.generation++
	m.logs, m.durable = earlier.logs.Clone(), earlier.durable
	m.logs.CutAfter(m.durable)
	m.stable, m.snapshots, m.mark, m.water = maps.Clone(earlier.stable), slices.Clone(earlier.snapshots), earlier.mark, earlier.water
}

// image returns another disk with the newest snapshot of this one and what is durable behind it.
func (m *Memory) image() *Memory {
	c := m.Copy()
	if len(c.snapshots) > 0 {
		c.snapshots = c.snapshots[:1]
		c.logs.DeleteRange(c.logs.First, c.snapshots[0].meta.Index)
	}
	return c
}

// memoryHandle is one opening of a Memory.
type memoryHandle struct {
	disk       *Memory
	generation int
}

var (
	_ raft.LogStore      = (*memoryHandle)(nil)
	_ raft.StableStore   = (*memoryHandle)(nil)
	_ raft.SnapshotStore = (*memoryHandle)(nil)
)

// with runs f on the disk unless it crashed since this handle was opened.
func (h *memoryHandle) with(f func(*Memory) error) error {
	h.disk.lock()
	defer h.disk.mu.Unlock()
	if h.disk.generation != h.generation {
		return ErrCrashed
	}
	return f(h.disk)
}

// FirstIndex implements raft.LogStore.
func (h *memoryHandle) FirstIndex() (first uint64, err error) {
	return first, h.with(func(m *Memory) error { first = m.logs.First; return nil })
}

// LastIndex implements raft.LogStore.
func (h *memoryHandle) LastIndex() (last uint64, err error) {
	err = h.with(func(m *Memory) error { last = m.logs.Last; return nil })
	return last, err
}

// GetLog implements raft.LogStore.
func (h *memoryHandle) GetLog(index uint64, out *raft.Log) error {
	return h.with(func(m *Memory) error {
		l, ok := m.logs.Entries[index]
		if !ok {
			return raft.ErrLogNotFound
		}
		*out = *l
		return nil
	})
}

// StoreLog implements raft.LogStore.
func (h *memoryHandle) StoreLog(l *raft.Log) error { return h.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (h *memoryHandle) StoreLogs(logs []*raft.Log) error {
	var delay time.Duration
	err := h.with(func(m *Memory) error {
		for _, l := range logs {
			m.logs.Put(l)
		}
		delay = m.SyncDelay
		return nil
	})
	if err != nil {
		return err
	}
	time.Sleep(delay)
	return h.with(func(m *Memory) error {
		m.durable = logs[len(logs)-1].Index
		return nil
	})
}

// DeleteRange implements raft.LogStore.
func (h *memoryHandle) DeleteRange(low, high uint64) error {
	return h.with(func(m *Memory) error {
		m.logs.DeleteRange(low, high)
		m.durable = min(m.durable, m.logs.Last)
		return nil
	})
}

// Set implements raft.StableStore.
func (h *memoryHandle) Set(key, value []byte) error {
	var delay time.Duration
	if err := h.with(func(m *Memory) error { delay = m.StableDelay; return nil }); err != nil {
		return err
	}
	time.Sleep(delay)
	return h.with(func(m *Memory) error {
		m.stable[string(key)] = bytes.Clone(value)
		return nil
	})
}

// Get implements raft.StableStore.
func (h *memoryHandle) Get(key []byte) (value []byte, err error) {
	err = h.with(func(m *Memory) error {
		stored, ok := m.stable[string(key)]
		if !ok {
			// The library knows a missing key by this text.
			return errors.New("not found")
		}
		value = bytes.Clone(stored)
		return nil
	})
	return value, err
}

// SetUint64 implements raft.StableStore; the checked store never calls it.
func (h *memoryHandle) SetUint64(key []byte, value uint64) error {
	return h.Set(key, fmt.Append(nil, value))
}

// GetUint64 implements raft.StableStore; the checked store never calls it.
func (h *memoryHandle) GetUint64(key []byte) (value uint64, err error) {
	stored, err := h.Get(key)
	if err == nil {
		_, err = fmt.Sscan(string(stored), &value)
	}
	return value, err
}

// Load implements marks.Store.
func (h *memoryHandle) Load() (mark *marks.Marker, err error) {
	err = h.with(func(m *Memory) error { mark = m.mark; return nil })
	return mark, err
}

// Save implements marks.Store.
func (h *memoryHandle) Save(mark *marks.Marker) error {
	return h.with(func(m *Memory) error { m.mark = mark; return nil })
}

// LoadWatermark implements marks.Store.
func (h *memoryHandle) LoadWatermark() (w marks.Watermark, err error) {
	err = h.with(func(m *Memory) error { w = m.water; return nil })
	return w, err
}

// SaveWatermark implements marks.Store.
func (h *memoryHandle) SaveWatermark(w marks.Watermark) error {
	return h.with(func(m *Memory) error { m.water = w; return nil })
}

// Close implements io.Closer.
func (h *memoryHandle) Close() error { return nil }

// Alter changes the value of the object that was last put under the key in the log, and
// the entry's checksum, as nothing does but a bug: a replica that starts on it has another
// state. It reports whether there was such an entry.
func (m *Memory) Alter(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.logs.Alter(key)
}
