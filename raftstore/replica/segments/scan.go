package segments

import (
	"errors"
	"fmt"
	"io"
)

// place is where a record is.
type place struct {
	segment       *segment
	offset, bytes uint32
}

// scan reads the records of a segment from its beginning, hands each to visit, and leaves used behind the last one.
// The newest segment may end with what a crash left of an append; that is cut off. All others have an end.
func (s *segment) scan(newest bool, visit func(head, place) error) error {
	content, err := s.content()
	if err != nil {
		return err
	}
	for {
		h, ok := s.whole(content, s.used)
		if !ok {
			break
		}
		if err := visit(h, place{s, uint32(s.used), uint32(h.size())}); err != nil {
			return err
		}
		s.moved(h.size())
		if h.kind == kindEnd {
			s.ended = true
			return nil
		}
	}
	if !newest {
		return fmt.Errorf("%w: segment %d has no end, and others follow it", ErrDamaged, s.number)
	}
	return s.cut(content)
}

// content is the whole file; what stands at an offset of the file stands there.
func (s *segment) content() ([]byte, error) {
	content := make([]byte, s.bytes)
	_, err := io.ReadFull(io.NewSectionReader(s.file, 0, s.bytes), content)
	return content, err
}

// whole returns the head of the record at an offset, if one was written there and is whole.
func (s *segment) whole(content []byte, offset int64) (head, bool) {
	rest := content[min(offset, s.bytes):]
	h, ok := s.secret.head(rest, offset, int64(len(rest)))
	return h, ok && bodyIsWhole(rest[:h.size()])
}

// cut makes the place behind the last whole record the end of the log, if nothing that was synced is lost by it.
// An append begins when the one before is on the disk. So records behind that place tell: if one is of a later
// append, the bytes at that place were on the disk, and are damaged. If all are of the append that is broken
// off there, the crash came in the middle of it; they go, or the next append could end where one of them begins.
func (s *segment) cut(content []byte) error {
	end := s.used
	for at := s.used + recordAlign; at+recordHeadBytes <= s.bytes; at += recordAlign {
		h, ok := s.whole(content, at)
		if !ok {
			continue
		}
		if int64(h.batch) > s.used {
			return fmt.Errorf("%w: segment %d has no record at %d, and one of a later append at %d", ErrDamaged, s.number, s.used, at)
		}
		end = at + h.size()
	}
	if end == s.used {
		return nil
	}
	if _, err := s.file.WriteAt(make([]byte, end-s.used), s.used); err != nil {
		return err
	}
	return s.disk.sync(s.file)
}

// replay makes the log of records, in the order in which they were written.
type replay struct {
	first  uint64
	places []place
}

func (r *replay) last() uint64 { return r.first + uint64(len(r.places)) - 1 }

// take adds the next record.
func (r *replay) take(h head, at place) error {
	switch h.kind {
	case kindForget:
		r.forget(h.index)
	case kindEntry:
		if len(r.places) == 0 {
			r.first = h.index
		}
		if h.index != r.first+uint64(len(r.places)) {
			return fmt.Errorf("%w: entry %d follows entry %d in segment %d", ErrDamaged, h.index, r.last(), at.segment.number)
		}
		r.places = append(r.places, at)
	}
	return nil
}

// forget drops the entries from an index on.
func (r *replay) forget(index uint64) {
	if len(r.places) > 0 && index <= r.last() {
		r.places = r.places[:max(index, r.first)-r.first]
	}
}

// openAll opens the segments with these numbers, which ascend, and reads them.
func openAll(dir string, numbers []uint64, disk disk, r *replay) (opened []*segment, err error) {
	defer func() {
		if err != nil {
			closeAll(opened)
		}
	}()
	for i, number := range numbers {
		if i > 0 && number != numbers[i-1]+1 {
			return opened, fmt.Errorf("%w: segment %d is missing", ErrDamaged, numbers[i-1]+1)
		}
		s, err := openSegment(dir, number, disk)
		if err != nil {
			return opened, err
		}
		opened = append(opened, s)
		if s.log != opened[0].log {
			return opened, fmt.Errorf("%w: segment %d is of another log", ErrDamaged, number)
		}
		if err := s.scan(i == len(numbers)-1, r.take); err != nil {
			return opened, err
		}
	}
	return opened, nil
}

func closeAll(segments []*segment) error {
	var errs []error
	for _, s := range segments {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}
