package segments

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/raft"
)

// ErrDamaged: the files are not what was written. ErrFailed: an earlier write failed, and what is on the disk is
// not known since.
var (
	ErrDamaged = errors.New("log segments are damaged")
	ErrFailed  = errors.New("an earlier write to the log failed")
)

// errNoSegment: the next segment could not be made, mostly because the disk has no room.
var errNoSegment = errors.New("no room for the log")

const (
	dirMode = 0o700
	// segmentBytesMin is the size of the first segment, segmentBytesMax of most; on a small file system one takes at most
	// a segmentPart of it, because as many as spareSegmentsMax are kept beside those in use.
	segmentBytesMin = 1 << 20
	segmentBytesMax = 16 << 20
	segmentPart     = 64
	// bufferBytesMax bounds the buffer that is kept for the next append.
	bufferBytesMax = 1 << 20
)

// Log is a raft log in a directory. It implements raft.LogStore.
type Log struct {
	dir  string
	disk disk
	// name is the log's own, in the header of each of its segments.
	name [16]byte

	// writing is held by those who write: appends, deletions, Close.
	writing sync.Mutex
	failed  error
	maker   maker
	buffer  []byte

	// mu guards what follows, for readers. It is never held during a read or a write of a file.
	mu sync.RWMutex
	// segments are the files, oldest first; the last one is written to. There is always one.
	segments []*segment
	replay
}

var _ raft.LogStore = (*Log)(nil)

// Open opens the log in a directory, which is made if it is missing. Errors wrap ErrDamaged if the files
// are not what was written.
func Open(dir string) (*Log, error) {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, err
	}
	total, err := totalBytes(dir)
	if err != nil {
		return nil, err
	}
	return openOn(dir, disk{datasync, segmentBytesMin, mostBytes(total)})
}

// mostBytes is the size of a large segment on a file system of a size, 0 if that is unknown: whole MiB.
func mostBytes(total int64) int64 {
	if total == 0 {
		return segmentBytesMax
	}
	return min(segmentBytesMax, max(segmentBytesMin, total/segmentPart/fillBytes*fillBytes))
}

// OpenWith is Open with another way to the disk, and with segments of other sizes, for tests that cut the power. sync brings a file, or
// the names in a directory, to the disk, and may be called by several goroutines.
func OpenWith(dir string, sync func(*os.File) error, firstBytes, mostBytes int64) (*Log, error) {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, err
	}
	return openOn(dir, disk{sync, firstBytes, mostBytes})
}

// openOn opens the log in a directory that exists.
func openOn(dir string, disk disk) (*Log, error) {
	numbers, err := tidy(dir)
	if err != nil {
		return nil, err
	}
	l := &Log{dir: dir, disk: disk, maker: maker{dir: dir, disk: disk}}
	if l.segments, err = openAll(dir, numbers, disk, &l.replay); err != nil {
		return nil, err
	}
	if err := l.settle(); err != nil {
		return nil, errors.Join(err, closeAll(l.segments))
	}
	if err := l.begin(); err != nil {
		return nil, errors.Join(err, closeAll(l.segments))
	}
	return l, nil
}

// settle brings to the disk what a process that was killed had written only: from now on it is built on.
func (l *Log) settle() error {
	if n := len(l.segments); n > 0 {
		if err := l.disk.sync(l.segments[n-1].file); err != nil {
			return err
		}
	}
	return errors.Join(l.disk.sync.names(l.dir), l.disk.sync.names(filepath.Dir(l.dir)))
}

// tidy returns the numbers of the segments in a directory, in order, and removes segments in the making, and those that were
// kept to be written again. Other files are somebody else's.
func tidy(dir string) (numbers []uint64, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		var number uint64
		path := filepath.Join(dir, f.Name())
		if _, err := fmt.Sscanf(f.Name(), "%016d.log", &number); err == nil && path == segmentPath(dir, number) {
			numbers = append(numbers, number)
		} else if f.Name() == makingName || strings.HasPrefix(f.Name(), sparePrefix) {
			if err := os.Remove(path); err != nil {
				return nil, err
			}
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// begin makes the segment to write to, if there is none.
func (l *Log) begin() error {
	if n := len(l.segments); n > 0 {
		l.name = l.segments[n-1].log
		if !l.newest().ended {
			return nil
		}
		return l.nextSegment(0)
	}
	rand.Read(l.name[:])
	made, err := l.maker.make(header{log: l.name, number: 1, bytes: l.disk.first})
	if err != nil {
		return err
	}
	l.segments = append(l.segments, made)
	return l.maker.place(made)
}

// newest is the segment that is written to. The caller holds writing or mu.
func (l *Log) newest() *segment { return l.segments[len(l.segments)-1] }

// FirstIndex implements raft.LogStore: 0 if there is no entry.
func (l *Log) FirstIndex() (uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if len(l.places) == 0 {
		return 0, nil
	}
	return l.first, nil
}

// LastIndex implements raft.LogStore: 0 if there is no entry.
func (l *Log) LastIndex() (uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if len(l.places) == 0 {
		return 0, nil
	}
	return l.last(), nil
}

// GetLog implements raft.LogStore. What is read is checked.
func (l *Log) GetLog(index uint64, out *raft.Log) error {
	at, ok := l.find(index)
	if !ok {
		return raft.ErrLogNotFound
	}
	defer at.segment.reading.RUnlock()
	h, record, err := at.segment.read(at)
	if err != nil {
		return err
	}
	if h.kind != kindEntry || h.index != index {
		return fmt.Errorf("%w: segment %d has another record at %d than entry %d", ErrDamaged, at.segment.number, at.offset, index)
	}
	*out = h.entry(record)
	return nil
}

// find returns the place of an entry, whose segment the caller must let go of. Appends do not wait for those who read.
func (l *Log) find(index uint64) (place, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if len(l.places) == 0 || index < l.first || index > l.last() {
		return place{}, false
	}
	at := l.places[index-l.first]
	at.segment.reading.RLock()
	return at, true
}

// StoreLog implements raft.LogStore.
func (l *Log) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs implements raft.LogStore: one append. The entries follow each other and the last one of the log.
func (l *Log) StoreLogs(entries []*raft.Log) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.failed != nil {
		return l.failed
	}
	if err := l.follows(entries); err != nil || len(entries) == 0 {
		return err
	}
	need := batchBytes(entries)
	if need > batchBytesMax {
		return fmt.Errorf("%d bytes are more than one append may have, %d", need, batchBytesMax)
	}
	if need > l.newest().room() {
		if err := l.nextSegment(need); err != nil {
			return l.wrote(err)
		}
	}
	if err := l.write(entries); err != nil {
		return l.wrote(err)
	}
	if s := l.newest(); s.used > s.bytes/2 {
		l.maker.prepare(header{log: l.name, number: s.number + 1, bytes: l.disk.next(s.bytes)})
	}
	return nil
}

// follows refuses entries that would leave a gap.
func (l *Log) follows(entries []*raft.Log) error {
	var next uint64
	if len(l.places) > 0 {
		next = l.last() + 1
	}
	for _, e := range entries {
		if next != 0 && e.Index != next {
			return fmt.Errorf("entry %d does not follow %d", e.Index, next-1)
		}
		next = e.Index + 1
	}
	return nil
}

func batchBytes(entries []*raft.Log) (n int64) {
	for _, e := range entries {
		n += aligned(recordHeadBytes + int64(len(e.Data)) + int64(len(e.Extensions)))
	}
	return n
}

// write appends entries to the newest segment, which has room for them.
func (l *Log) write(entries []*raft.Log) error {
	s := l.newest()
	begin := s.used
	places := make([]place, 0, len(entries))
	b := l.buffer[:0]
	for _, e := range entries {
		h, offset := entryHead(e, uint32(begin)), begin+int64(len(b))
		b = s.secret.appendRecord(b, offset, h, e.Data, e.Extensions)
		places = append(places, place{s, uint32(offset), uint32(h.size())})
	}
	if cap(b) <= bufferBytesMax {
		l.buffer = b
	}
	if err := s.write(b); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.places) == 0 {
		l.first = entries[0].Index
	}
	l.places = append(l.places, places...)
	return nil
}

// wrote notes that a write failed. A segment that could not be made is no such failure: nothing was written then.
func (l *Log) wrote(err error) error {
	if err != nil && !errors.Is(err, errNoSegment) {
		l.failed = fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return err
}

// nextSegment ends the newest segment and makes the next one, with room for an append of need bytes.
func (l *Log) nextSegment(need int64) error {
	s := l.newest()
	made, err := l.maker.make(header{log: l.name, number: s.number + 1, bytes: aligned(headerBytes + need + recordHeadBytes)})
	if err != nil {
		return fmt.Errorf("%w: %w", errNoSegment, err)
	}
	if !s.ended {
		if err := s.mark(kindEnd, 0); err != nil {
			return err
		}
		s.ended = true
	}
	if err := l.maker.place(made); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.segments = append(l.segments, made)
	return nil
}
