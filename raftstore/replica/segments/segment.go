package segments

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

const (
	// headerBytes is the size of a segment's header: a block of its own, written once.
	headerBytes = 4096
	// fillBytes is how much of a new segment is written and synced at once: appends to the segment before wait
	// for the same disk.
	fillBytes = 1 << 20
	// blockBytes is how much is written with one call. What one call writes is one piece of Linux's file cache (a large folio, up to
	// 2 MiB on ext4 since 6.16), and each append to such a piece counts as a write of all of it in /proc/PID/io.
	blockBytes = 4096

	fileMode = 0o600
)

// headerMagic is how a segment begins: what it is, and the version of its format.
var headerMagic = []byte("setpoint log segment 1\n\x00")

// header tells of a segment what its name does not.
type header struct {
	// log is the name of the log that the segment belongs to.
	log [16]byte
	// number is the place of the segment among those of the log, from 1.
	number uint64
	// bytes is the size of the file.
	bytes  int64
	secret secret
}

func (h header) marshal() []byte {
	b := append(make([]byte, 0, headerBytes), headerMagic...)
	b = append(b, h.log[:]...)
	b = binary.LittleEndian.AppendUint64(b, h.number)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.bytes))
	b = append(b, h.secret[:]...)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return append(b, make([]byte, headerBytes-len(b))...)
}

// parseHeader reads the header of the segment with a number.
func parseHeader(b []byte, number uint64) (header, error) {
	rest, ok := bytes.CutPrefix(b, headerMagic)
	if !ok {
		return header{}, errors.New("is no segment of a format that is known here")
	}
	var h header
	copy(h.log[:], rest)
	h.number = binary.LittleEndian.Uint64(rest[16:])
	h.bytes = int64(binary.LittleEndian.Uint64(rest[24:]))
	copy(h.secret[:], rest[32:])
	switch {
	case !bytes.Equal(h.marshal(), b):
		return header{}, errors.New("has a damaged header")
	case h.number != number:
		return header{}, fmt.Errorf("was written as segment %d", h.number)
	}
	return h, nil
}

// segment is an open segment.
type segment struct {
	header
	file *os.File
	disk disk
	// used is where the next record goes; unwritten is the room behind it, for those who only ask.
	used      int64
	unwritten atomic.Int64
	// reading is held by those who read an entry, so that the file is closed behind the last of them.
	reading sync.RWMutex
	// ended: the last record is its end, and the next segment follows.
	ended bool
}

func segmentPath(dir string, number uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%016d.log", number))
}

// openSegment opens the file of a segment and reads its header.
func openSegment(dir string, number uint64, disk disk) (*segment, error) {
	path := segmentPath(dir, number)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	s := &segment{file: file, disk: disk, used: headerBytes}
	if err := s.readHeader(number); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	s.moved(0)
	return s, nil
}

func (s *segment) readHeader(number uint64) (err error) {
	b := make([]byte, headerBytes)
	if _, err := s.file.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if s.header, err = parseHeader(b, number); err != nil {
		return fmt.Errorf("%w: it %w", ErrDamaged, err)
	}
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() != s.bytes {
		return fmt.Errorf("%w: it has %d bytes and not %d", ErrDamaged, info.Size(), s.bytes)
	}
	return nil
}

// moved notes that the records reach n bytes further.
func (s *segment) moved(n int64) {
	s.used += n
	s.unwritten.Store(s.bytes - s.used)
}

// room is how many bytes of records fit in front of the segment's end: none behind it.
func (s *segment) room() int64 {
	if s.ended {
		return 0
	}
	return s.bytes - s.used - recordHeadBytes
}

// read reads the record at a place.
func (s *segment) read(at place) (h head, record []byte, err error) {
	record = make([]byte, at.bytes)
	if _, err := s.file.ReadAt(record, int64(at.offset)); err != nil {
		return head{}, nil, err
	}
	h, ok := s.secret.head(record, int64(at.offset), int64(at.bytes))
	if !ok || h.size() != int64(at.bytes) || !bodyIsWhole(record) {
		return head{}, nil, fmt.Errorf("%w: the record at %d of segment %d has a wrong checksum", ErrDamaged, at.offset, s.number)
	}
	return h, record, nil
}

// close closes the file when nobody reads it any more.
func (s *segment) close() error {
	s.reading.Lock()
	defer s.reading.Unlock()
	return s.file.Close()
}

// write puts records behind the last one, onto the disk.
func (s *segment) write(records []byte) error {
	if _, err := s.file.WriteAt(records, s.used); err != nil {
		return err
	}
	if err := s.disk.sync(s.file); err != nil {
		return err
	}
	s.moved(int64(len(records)))
	return nil
}

// mark writes a record that has no data: an append of its own.
func (s *segment) mark(k kind, index uint64) error {
	return s.write(s.secret.appendRecord(nil, s.used, head{kind: k, index: index, batch: uint32(s.used)}, nil, nil))
}

// makeSegment makes a whole segment of a file, with a secret of its own, under a name that is not a segment's yet. The file is new, or
// a segment of the past that has the size already.
func makeSegment(path string, h header, disk disk) (*segment, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	rand.Read(h.secret[:])
	s := &segment{file: file, disk: disk, used: headerBytes, header: h}
	s.moved(0)
	if err := s.fill(); err != nil {
		file.Close()
		return nil, err
	}
	return s, nil
}

// fill gives the file its size and the header. The blocks are written, not only reserved: a reserved block is marked as
// used by its first write, for which each sync would write the file system's journal. They are reserved first, so that
// a disk without room is not filled up to find that out.
func (s *segment) fill() error {
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	if err := reserve(s.file, s.bytes); err != nil {
		return err
	}
	zeros := make([]byte, blockBytes)
	for at := info.Size(); at < s.bytes; at += blockBytes {
		if _, err := s.file.WriteAt(zeros[:min(blockBytes, s.bytes-at)], at); err != nil {
			return err
		}
		if at%fillBytes != 0 {
			continue
		}
		if err := s.disk.sync(s.file); err != nil {
			return err
		}
	}
	if err := s.file.Truncate(s.bytes); err != nil {
		return err
	}
	if _, err := s.file.WriteAt(s.marshal(), 0); err != nil {
		return err
	}
	return s.disk.sync(s.file)
}
