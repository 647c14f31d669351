package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/setpoint-io/setpoint/raftstore/wire"
)

// Reader reads the snapshot in an archive and checks the archive on the way. It
// gives io.EOF only behind a footer that agrees with all before it.
type Reader struct {
	// Header is what the archive says of itself.
	Header Header
	// OnProgress, if set, is called after each block with the objects and bytes of
	// the archive read so far.
	OnProgress func(objects, bytes int64)

	in  io.Reader
	sum hash.Hash
	// payload is the memory of the present block, rest what was not read of it.
	payload       bytes.Buffer
	rest          []byte
	bytesRead     int64
	snapshotBytes int64
	footer        footer
	// ended is the error that every further read gives, io.EOF after a whole archive.
	ended error
}

// IsBackup reports whether something begins as an archive does, whole or not, of any version.
func IsBackup(in io.Reader) bool {
	start := make([]byte, len(magic))
	_, err := io.ReadFull(in, start)
	return err == nil && string(start) == magic
}

// NewReader reads the beginning of an archive. Errors wrap ErrDamaged, ErrNewer, or
// the error of in.
func NewReader(in io.Reader) (*Reader, error) {
	r := &Reader{in: in, sum: sha256.New()}
	start := make([]byte, len(magic))
	if _, err := io.ReadFull(in, start); err != nil {
		return nil, cutShort(err)
	}
	if string(start) != magic {
		return nil, fmt.Errorf("%w: this is not a backup", ErrDamaged)
	}
	r.take(start)
	kind, items, err := r.block()
	if err != nil {
		return nil, err
	}
	if kind != headerBlock {
		return nil, fmt.Errorf("%w: block of kind %d in front", ErrDamaged, kind)
	}
	if r.Header, err = readHeader(items); errors.Is(err, ErrNewer) {
		return nil, err
	} else if err != nil || items.Len() > 0 {
		return nil, fmt.Errorf("%w: header", ErrDamaged)
	}
	return r, nil
}

// Read implements io.Reader: the bytes of a snapshot of package state.
func (r *Reader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 && r.ended == nil {
		r.ended = r.next()
	}
	if len(r.rest) == 0 {
		return 0, r.ended
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// next reads one block; io.EOF says that it was the footer.
func (r *Reader) next() error {
	before := r.sum.Sum(nil)
	kind, items, err := r.block()
	if err != nil {
		return err
	}
	switch kind {
	case dataBlock:
		objects := items.Uvarint()
		if items.Err() != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, items.Err())
		}
		payload := r.payload.Bytes()
		r.rest = payload[len(payload)-items.Len():]
		r.snapshotBytes += int64(items.Len())
		if r.OnProgress != nil {
			r.OnProgress(int64(objects), r.bytesRead)
		}
		return nil
	case footerBlock:
		return r.end(items, before)
	}
	return fmt.Errorf("%w: block of unknown kind %d", ErrDamaged, kind)
}

// end compares the footer with what was read, and sees that nothing follows.
func (r *Reader) end(items *wire.Reader, sum []byte) (err error) {
	if r.footer, err = readFooter(items); err != nil || items.Len() > 0 {
		return fmt.Errorf("%w: footer", ErrDamaged)
	}
	switch {
	case !bytes.Equal(r.footer.sum, sum):
		return fmt.Errorf("%w: checksum over the whole", ErrDamaged)
	case r.footer.objects != r.Header.Objects, r.footer.snapshotBytes != r.snapshotBytes:
		return fmt.Errorf("%w: header and footer disagree", ErrDamaged)
	}
	switch n, err := io.ReadFull(r.in, make([]byte, 1)); {
	case n > 0:
		return fmt.Errorf("%w: bytes behind the end", ErrDamaged)
	case !errors.Is(err, io.EOF):
		return err
	}
	return io.EOF
}

// block reads one block and checks it; its items are valid until the next.
func (r *Reader) block() (kind byte, items *wire.Reader, err error) {
	var head [blockHeaderBytes]byte
	if _, err := io.ReadFull(r.in, head[:]); err != nil {
		return 0, nil, cutShort(err)
	}
	size := binary.LittleEndian.Uint32(head[:4])
	if size == 0 || size > maxBlockBytes {
		return 0, nil, fmt.Errorf("%w: block of %d bytes", ErrDamaged, size)
	}
	r.payload.Reset()
	if _, err := io.CopyN(&r.payload, r.in, int64(size)); err != nil {
		return 0, nil, cutShort(err)
	}
	payload := r.payload.Bytes()
	if wire.Checksum(head[:4], payload) != binary.LittleEndian.Uint32(head[4:]) {
		return 0, nil, fmt.Errorf("%w: checksum of the block at byte %d", ErrDamaged, r.bytesRead)
	}
	r.take(head[:])
	r.take(payload)
	return payload[0], wire.NewReader(payload[1:]), nil
}

func (r *Reader) take(p []byte) {
	r.sum.Write(p) // a hash takes everything
	r.bytesRead += int64(len(p))
}

// cutShort makes an end where more should follow damage; other errors are the
// source's own.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it is cut short", ErrDamaged)
	}
	return err
}
