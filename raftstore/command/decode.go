package command

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/setpoint-io/setpoint/raftstore/wire"
)

// The fewest bytes a command and an op can take: what a count is checked against
// before anything is allocated for it.
const (
	minCommandBytes = 9
	minOpBytes      = 6
)

// Unmarshal reads an entry. Values alias data; strings do not. The errors are
// ErrMalformed, ErrChecksum, ErrUnknownFormat and ErrUnknownOp; the last two come
// only for bytes that pass the checksum, so they mean a newer writer.
func Unmarshal(data []byte) (*Entry, error) {
	if len(data) < 1+checksumBytes {
		return nil, fmt.Errorf("%w: %d bytes", ErrMalformed, len(data))
	}
	body, sum := data[:len(data)-checksumBytes], binary.LittleEndian.Uint32(data[len(data)-checksumBytes:])
	if got := wire.Checksum(body); got != sum {
		return nil, fmt.Errorf("%w: computed %08x, stored %08x", ErrChecksum, got, sum)
	}
	if body[0] != FormatVersion {
		return nil, fmt.Errorf("%w: %d", ErrUnknownFormat, body[0])
	}
	r := wire.NewReader(body[1:])
	e := readEntry(r)
	if r.Len() > 0 {
		return nil, fmt.Errorf("%w: %d bytes after the last command", ErrMalformed, r.Len())
	}
	if r.Err() != nil {
		return nil, readError(r)
	}
	return e, nil
}

func readError(r *wire.Reader) error {
	if errors.Is(r.Err(), wire.ErrMalformed) {
		return fmt.Errorf("%w: cut short", ErrMalformed)
	}
	return r.Err()
}

func readEntry(r *wire.Reader) *Entry {
	e := &Entry{FormatVersion: FormatVersion, Term: r.Uvarint()}
	if n := r.Count(minCommandBytes); n > 0 {
		e.Commands = make([]Command, n)
	}
	for i := range e.Commands {
		if r.Err() != nil {
			break
		}
		readCommand(r, &e.Commands[i])
	}
	return e
}

func readCommand(r *wire.Reader, c *Command) {
	c.Session = r.Uvarint()
	c.Sequence = r.Uvarint()
	c.Fence = r.Uvarint()
	c.Actor.User = r.String()
	c.Actor.FieldManager = r.String()
	c.Cause.UID = r.String()
	c.Cause.Revision = r.Uvarint()
	c.RequestID = r.String()
	if n := r.Count(minOpBytes); n > 0 {
		c.Ops = make([]Op, n)
	}
	for i := range c.Ops {
		if r.Err() != nil {
			return
		}
		readOp(r, &c.Ops[i])
	}
}

func readOp(r *wire.Reader, o *Op) {
	o.Kind = OpKind(r.Byte())
	o.Precondition = Precondition(r.Byte())
	if o.Kind == 0 || o.Kind > lastKind || o.Precondition > lastPrecondition {
		r.Fail(fmt.Errorf("%w: kind %d with precondition %d", ErrUnknownOp, o.Kind, o.Precondition))
		return
	}
	o.Revision = r.Uvarint()
	o.Key = r.String()
	o.UID = r.String()
	o.Value = r.Bytes()
}

// ReadResult reads what Result.Append wrote. A failure is left in r.
func ReadResult(r *wire.Reader) Result {
	res := Result{Code: Code(r.Byte()), Revision: r.Uvarint(), Current: r.Uvarint()}
	failed := r.Uvarint()
	if failed > math.MaxInt32 {
		r.Fail(wire.ErrMalformed)
	}
	res.FailedOp = int(failed)
	res.Message = r.String()
	if n := r.Count(1); n > 0 {
		res.Revisions = make([]uint64, n)
	}
	for i := range res.Revisions {
		res.Revisions[i] = r.Uvarint()
	}
	return res
}
