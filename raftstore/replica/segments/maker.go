package segments

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// spareSegmentsMax is how many segments of the past are kept, to be written again in place of new files: as many as a
// log of 64 MiB fills.
const spareSegmentsMax = 4

// maker makes segments: from those of the past, or new ones, and the next one ahead of time.
type maker struct {
	dir  string
	disk disk

	mu sync.Mutex
	// spares are files of disk.most bytes that hold nothing of the log.
	spares []string
	// kept numbers the names of spares.
	kept int
	// ahead is the segment that is being made, nil if there is none.
	ahead chan made
}

// made is a segment in the making.
type made struct {
	segment *segment
	err     error
}

// makingName is the name of the segment in the making. There is one at a time.
const makingName = "making"

// sparePrefix is how the names of spare files begin.
const sparePrefix = "spare-"

// prepare begins to make a segment that is going to be needed. Only the writer calls it, and make.
func (m *maker) prepare(h header) {
	if m.ahead != nil {
		return
	}
	ahead := make(chan made, 1)
	m.ahead = ahead
	go func() {
		s, err := m.build(h)
		ahead <- made{s, err}
	}()
}

// make returns a segment that place can give its name, of h.bytes at least. If none was made ahead, it is a small one: an append
// waits for it, and the disk may have little room.
func (m *maker) make(h header) (*segment, error) {
	if m.ahead != nil {
		ready := <-m.ahead
		m.ahead = nil
		if ready.err == nil && ready.segment.number == h.number && ready.segment.bytes >= h.bytes {
			return ready.segment, nil
		}
		ready.drop()
	}
	roomy := h
	roomy.bytes = max(h.bytes, m.disk.first)
	made, err := m.build(roomy)
	if errors.Is(err, syscall.ENOSPC) && roomy.bytes > h.bytes {
		return m.build(h)
	}
	return made, err
}

// drop closes a segment that is not used.
func (m made) drop() {
	if m.segment != nil {
		m.segment.file.Close()
	}
}

// build makes a segment of a spare one or a new file. A file that is left of a failure is removed: its room is needed.
func (m *maker) build(h header) (*segment, error) {
	path := filepath.Join(m.dir, makingName)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if spare := m.spare(h.bytes); spare != "" {
		if err := os.Rename(spare, path); err != nil {
			return nil, err
		}
	}
	s, err := makeSegment(path, h, m.disk)
	if err != nil {
		os.Remove(path)
		return nil, err
	}
	return s, nil
}

// spare takes a spare file of a size, "" if there is none.
func (m *maker) spare(size int64) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.spares)
	if n == 0 || size != m.disk.most {
		return ""
	}
	taken := m.spares[n-1]
	m.spares = m.spares[:n-1]
	return taken
}

// place makes the segment part of the log.
func (m *maker) place(s *segment) error {
	if err := os.Rename(filepath.Join(m.dir, makingName), segmentPath(m.dir, s.number)); err != nil {
		return err
	}
	return m.disk.sync.names(m.dir)
}

// discard takes segments out of the log, the oldest first: what remains has no gap. They are written again only when the
// directory on the disk does not name them any more, or a crash would leave a segment of the log with other content.
func (m *maker) discard(unused []*segment) error {
	var spares []string
	var errs []error
	for _, s := range unused {
		spare, err := m.retire(s, len(spares))
		if errs = append(errs, err); spare != "" {
			spares = append(spares, spare)
		}
	}
	if err := errors.Join(append(errs, m.disk.sync.names(m.dir))...); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spares = append(m.spares, spares...)
	return nil
}

// retire removes a segment, or makes it a spare one beside those that were made just now.
func (m *maker) retire(s *segment, beside int) (spare string, err error) {
	if err := s.close(); err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.bytes != m.disk.most || len(m.spares)+beside >= spareSegmentsMax {
		return "", os.Remove(segmentPath(m.dir, s.number))
	}
	m.kept++
	spare = filepath.Join(m.dir, fmt.Sprintf("%s%d", sparePrefix, m.kept))
	return spare, os.Rename(segmentPath(m.dir, s.number), spare)
}

// dropSpares removes the spare files.
func (m *maker) dropSpares() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, spare := range m.spares {
		errs = append(errs, os.Remove(spare))
	}
	m.spares = nil
	return errors.Join(errs...)
}

// bytes is the size of the spare files.
func (m *maker) bytes() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int64(len(m.spares)) * m.disk.most
}

// close waits for the segment in the making and drops it.
func (m *maker) close() {
	if m.ahead != nil {
		ready := <-m.ahead
		ready.drop()
		m.ahead = nil
	}
}
