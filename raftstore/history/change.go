package history

import (
	"bytes"
	"cmp"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/record"
	"github.com/setpoint-io/setpoint/raftstore/watch"
	"github.com/setpoint-io/setpoint/raftstore/wire"
)

// Change is one change of one key.
type Change struct {
	Revision uint64
	// Time is when the leader took the change, by its clock; not before that of the change before, unless that is more than stepMax
	// ahead. Zero: unknown.
	Time    time.Time
	Key     string
	Deleted bool
	// UID is that of the object that was put, or deleted.
	UID string
	// Before is the object as it was, nil: there was none. It has no value if that was purged.
	Before *record.Record
	Origin command.Origin
}

// A change in a block:
//
//	u8 flags | revision - that before | milliseconds - those before, modulo 2^64 | key | uid | user | manager | cause uid | cause revision |
//	request id | with hasBefore: uid | create | mod | value
const (
	flagDeleted byte = 1
	flagBefore  byte = 2
	// flagUntimed: the time is not known, and milliseconds are those of the change before.
	flagUntimed byte = 4
)

// stepMax is how far a clock may have been ahead for the changes after it to have its time. A clock that was further ahead was wrong.
const stepMax = time.Hour

// place is where in revisions and time a block has got to.
type place struct {
	revision, millis uint64
}

// appendChange appends an event that follows on at, and returns where it is. Floor is the time before the
// block, in milliseconds since 1970.
func appendChange(b []byte, e *watch.Event, at place, floor uint64) ([]byte, place) {
	flags, uid := byte(0), ""
	if e.Type == watch.Delete {
		flags |= flagDeleted
	}
	if e.Prev != nil {
		flags |= flagBefore
		uid = e.Prev.UID
	}
	if e.Record != nil {
		uid = e.Record.UID
	}
	origin := command.Origin{}
	if e.Origin != nil {
		origin = *e.Origin
	}
	now := place{e.Revision, cmp.Or(at.millis, floor)}
	switch told := uint64(max(0, origin.UnixNanos) / int64(time.Millisecond)); {
	case told == 0:
		flags |= flagUntimed
	case told > now.millis, now.millis-told > uint64(stepMax/time.Millisecond):
		now.millis = told
	}
	b = append(b, flags)
	b = wire.AppendUvarint(b, now.revision-at.revision, now.millis-at.millis)
	b = wire.AppendString(wire.AppendString(b, e.Key), uid)
	b = wire.AppendString(wire.AppendString(b, origin.Actor.User), origin.Actor.FieldManager)
	b = wire.AppendUvarint(wire.AppendString(b, origin.Cause.UID), origin.Cause.Revision)
	b = wire.AppendString(b, origin.RequestID)
	if e.Prev != nil {
		b = wire.AppendUvarint(wire.AppendString(b, e.Prev.UID), e.Prev.CreateRevision, e.Prev.ModRevision)
		b = wire.AppendString(b, e.Prev.Value)
	}
	return b, now
}

// kept returns what was before, in memory of its own. It has no digest.
func (c *Change) kept() *record.Record {
	if c.Before != nil {
		c.Before.Value = bytes.Clone(c.Before.Value)
	}
	return c.Before
}

// readChange reads what appendChange wrote. The value before aliases what is read: see kept.
func readChange(r *wire.Reader, at place) (Change, place) {
	flags := r.Byte()
	at = place{at.revision + r.Uvarint(), at.millis + r.Uvarint()}
	c := Change{Revision: at.revision, Deleted: flags&flagDeleted != 0, Key: r.String(), UID: r.String()}
	if flags&flagUntimed == 0 {
		c.Time = timeOf(at.millis)
	}
	c.Origin.Actor = command.Actor{User: r.String(), FieldManager: r.String()}
	c.Origin.Cause = command.Cause{UID: r.String(), Revision: r.Uvarint()}
	c.Origin.RequestID = r.String()
	if flags&flagBefore != 0 {
		c.Before = &record.Record{Key: c.Key, UID: r.String(), CreateRevision: r.Uvarint(), ModRevision: r.Uvarint(), Value: r.Bytes()}
	}
	return c, at
}

// timeOf is zero where no time is known.
func timeOf(millis uint64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(millis)).UTC()
}
