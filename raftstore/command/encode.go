package command

import (
	"encoding/binary"

	"github.com/setpoint-io/setpoint/raftstore/wire"
)

// The entry, version 1. Numbers are unsigned varints, strings and values are a
// length and the bytes.
//
//	u8 format | term | count | count x command | u32 CRC-32C, little endian,
//	                                             over all bytes before it
//	command: session | sequence | fence | user | field manager | cause uid |
//	         cause revision | request id | count | count x op
//	op:      u8 kind | u8 precondition | revision | key | uid | value
//	result:  u8 code | revision | current | failed op | message | count |
//	         count x revision

const checksumBytes = 4

// fixedCommandBytes and fixedOpBytes bound what a command and an op take beside
// their strings: every varint at its longest.
const (
	fixedCommandBytes = 9 * binary.MaxVarintLen64
	fixedOpBytes      = 2 + 4*binary.MaxVarintLen64
)

// Marshal returns the entry as bytes. It writes what it is given: Validate the
// commands before, since a rejected one still takes its place in the log.
func (e *Entry) Marshal() []byte {
	b := make([]byte, 0, e.size())
	b = append(b, e.FormatVersion)
	b = wire.AppendUvarint(b, e.Term, uint64(len(e.Commands)))
	for i := range e.Commands {
		b = e.Commands[i].append(b)
	}
	return binary.LittleEndian.AppendUint32(b, wire.Checksum(b))
}

func (e *Entry) size() int {
	n := 1 + 2*binary.MaxVarintLen64 + checksumBytes
	for i := range e.Commands {
		n += e.Commands[i].Size()
	}
	return n
}

// Size returns how many bytes the command takes at most in an entry; the
// proposer packs by it.
func (c *Command) Size() int {
	n := fixedCommandBytes + len(c.Actor.User) + len(c.Actor.FieldManager) + len(c.Cause.UID) + len(c.RequestID)
	for i := range c.Ops {
		n += fixedOpBytes + len(c.Ops[i].Key) + len(c.Ops[i].UID) + len(c.Ops[i].Value)
	}
	return n
}

func (c *Command) append(b []byte) []byte {
	b = wire.AppendUvarint(b, c.Session, c.Sequence, c.Fence)
	b = wire.AppendString(b, c.Actor.User)
	b = wire.AppendString(b, c.Actor.FieldManager)
	b = wire.AppendString(b, c.Cause.UID)
	b = wire.AppendUvarint(b, c.Cause.Revision)
	b = wire.AppendString(b, c.RequestID)
	b = wire.AppendUvarint(b, uint64(len(c.Ops)))
	for i := range c.Ops {
		b = c.Ops[i].append(b)
	}
	return b
}

func (o *Op) append(b []byte) []byte {
	b = append(b, byte(o.Kind), byte(o.Precondition))
	b = wire.AppendUvarint(b, o.Revision)
	b = wire.AppendString(b, o.Key)
	b = wire.AppendString(b, o.UID)
	return wire.AppendString(b, o.Value)
}

// Append appends the result as bytes; ReadResult reads it back. Snapshots and
// the forwarding of commands carry results so.
func (r *Result) Append(b []byte) []byte {
	b = append(b, byte(r.Code))
	b = wire.AppendUvarint(b, r.Revision, r.Current, uint64(r.FailedOp))
	b = wire.AppendString(b, r.Message)
	b = wire.AppendUvarint(b, uint64(len(r.Revisions)))
	return wire.AppendUvarint(b, r.Revisions...)
}
