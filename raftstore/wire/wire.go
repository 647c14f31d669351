package wire

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// ErrMalformed reports bytes that end early, or numbers that cannot be.
var ErrMalformed = errors.New("malformed bytes")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the CRC-32C of the parts, one after the other.
func Checksum(parts ...[]byte) uint32 {
	var sum uint32
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli, p)
	}
	return sum
}

// AppendUvarint appends each number as an unsigned varint.
func AppendUvarint(b []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// AppendString appends the length of s and s.
func AppendString[S string | []byte](b []byte, s S) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// Reader takes values off the front of its input.
type Reader struct {
	rest []byte
	err  error
}

// NewReader returns a reader of data. What Bytes returns aliases data.
func NewReader(data []byte) *Reader { return &Reader{rest: data} }

// Err returns the first failure, or nil.
func (r *Reader) Err() error { return r.err }

// Len returns how many bytes are left; 0 after a failure.
func (r *Reader) Len() int { return len(r.rest) }

// Fail records err unless there was a failure before, and ends the input.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.rest = nil
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if len(r.rest) == 0 {
		r.Fail(ErrMalformed)
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

// Uvarint reads one unsigned varint.
func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.Fail(ErrMalformed)
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// Count reads how many items follow, each of at least itemBytes: a number that
// is safe to allocate for.
func (r *Reader) Count(itemBytes int) int {
	n := r.Uvarint()
	if n > uint64(len(r.rest)/itemBytes) {
		r.Fail(ErrMalformed)
		return 0
	}
	return int(n)
}

// Bytes reads a byte string: a view into the input, nil if empty, without
// capacity beyond its length.
func (r *Reader) Bytes() []byte {
	n := r.Uvarint()
	if n > uint64(len(r.rest)) {
		r.Fail(ErrMalformed)
		return nil
	}
	if n == 0 {
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// String reads a byte string as a string of its own.
func (r *Reader) String() string { return string(r.Bytes()) }
