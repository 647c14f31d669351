package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/setpoint-io/setpoint/raftstore/wire"
)

// ErrCorruptSnapshot reports a snapshot that is damaged, cut, of another format,
// or no snapshot.
var ErrCorruptSnapshot = errors.New("corrupt snapshot")

// ErrNewerSnapshot reports a snapshot in a format of a newer release.
var ErrNewerSnapshot = errors.New("snapshot of a newer format")

const blockHeaderBytes = 8

// blockWriter packs items into blocks. After its first error it does nothing.
type blockWriter struct {
	w       io.Writer
	section section
	payload []byte
	written int64
	err     error
}

// item adds one item, written by fill at the end of what it is given.
func (b *blockWriter) item(s section, fill func([]byte) []byte) {
	if b.section != s || len(b.payload) >= blockBytes {
		b.flush()
		b.section = s
		b.payload = append(b.payload[:0], byte(s))
	}
	b.payload = fill(b.payload)
}

func (b *blockWriter) flush() {
	if len(b.payload) == 0 {
		return
	}
	var head [blockHeaderBytes]byte
	binary.LittleEndian.PutUint32(head[:4], uint32(len(b.payload)))
	binary.LittleEndian.PutUint32(head[4:], wire.Checksum(head[:4], b.payload))
	b.write(head[:])
	b.write(b.payload)
	b.payload = b.payload[:0]
}

func (b *blockWriter) write(p []byte) {
	if b.err != nil {
		return
	}
	n, err := b.w.Write(p)
	b.written += int64(n)
	b.err = err
}

// blockReader reads blocks, one after the other, into the same memory.
type blockReader struct {
	r       io.Reader
	payload bytes.Buffer
}

// next returns the items of the next block, valid until the call after. io.EOF
// means a clean end.
func (b *blockReader) next() (section, *wire.Reader, error) {
	var head [blockHeaderBytes]byte
	if _, err := io.ReadFull(b.r, head[:]); err != nil {
		return 0, nil, cutShort(err)
	}
	size := binary.LittleEndian.Uint32(head[:4])
	if size == 0 || size > maxBlockBytes {
		return 0, nil, fmt.Errorf("%w: block of %d bytes", ErrCorruptSnapshot, size)
	}
	// The length is not to be trusted before the checksum: the buffer grows with
	// what arrives.
	b.payload.Reset()
	if _, err := io.CopyN(&b.payload, b.r, int64(size)); err != nil {
		return 0, nil, cutShort(unexpected(err))
	}
	payload := b.payload.Bytes()
	if wire.Checksum(head[:4], payload) != binary.LittleEndian.Uint32(head[4:]) {
		return 0, nil, fmt.Errorf("%w: block checksum", ErrCorruptSnapshot)
	}
	return section(payload[0]), wire.NewReader(payload[1:]), nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// cutShort marks an end inside a block as corruption; other errors are the
// reader's own.
func cutShort(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: cut short", ErrCorruptSnapshot)
	}
	return err
}
