package watch

import (
	"errors"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/record"
)

var (
	// ErrCompacted reports that events after the requested revision have left
	// the ring: list again and watch from there (410 Gone).
	ErrCompacted = errors.New("revision has been compacted")
	// ErrClosed reports Next on a watcher after Close.
	ErrClosed = errors.New("watcher closed")
)

// EventType says what happened to a key.
type EventType uint8

// The types of events. The numbers are part of the snapshot format.
const (
	Put    EventType = 1
	Delete EventType = 2
)

// Event is one change of one key. Events are shared; do not change what they
// point at.
type Event struct {
	Type     EventType
	Revision uint64
	Key      string
	// Record is the object as put, nil for Delete. Prev is the object before, nil
	// if the key was absent.
	Record, Prev *record.Record
	// Origin says who made the change and why.
	Origin *command.Origin
}

// overheadBytes is charged for an event beside its key and values.
const overheadBytes = 192

// Bytes returns what the event counts against the ring's limit, in bytes. Both
// values count, although an older event may share one.
func (e *Event) Bytes() int64 {
	n := overheadBytes + len(e.Key)
	if e.Record != nil {
		n += len(e.Record.Value)
	}
	if e.Prev != nil {
		n += len(e.Prev.Value)
	}
	return int64(n)
}
