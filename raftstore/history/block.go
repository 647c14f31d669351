package history

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/watch"
	"github.com/setpoint-io/setpoint/raftstore/wire"
)

const (
	// blockRawBytes is when a block is closed, before it is compressed; one change may take it further.
	blockRawBytes = 256 << 10
	// blockRawBytesMax is what a reader accepts.
	blockRawBytesMax = blockRawBytes + command.MaxValueBytes + 64<<10
	// headBytesMax bounds the head: a change has at least eight bytes, and names itself and three folders.
	headBytesMax = 1 << 20
	// frameBytes are in front of each block: magic, length of head and body, checksum of these and the head, checksum of the body.
	frameBytes = 20
)

var (
	errDamaged = errors.New("history: damaged block")
	blockMagic = [4]byte{'S', 'P', 'H', '1'}
)

// span says of a block what a reader needs to know before it reads it.
type span struct {
	// The block has every change of the revisions in (after, last].
	after, last uint64
	// firstMillis and lastMillis are the times of the first and the last change, since 1970; untimed changes have that of the one before.
	firstMillis, lastMillis    uint64
	changes, untimed, rawBytes uint64
	life                       string
}

// block is a block on the disk.
type block struct {
	span
	file      *file
	offset    int64
	headBytes uint32
	bodyBytes uint32
}

func (b *block) bytes() int64 { return frameBytes + int64(b.headBytes) + int64(b.bodyBytes) }

// open is the block that is being filled.
type open struct {
	span
	at place
	// floor is the time of the last change before the block.
	floor uint64
	raw   []byte
	marks map[uint32]struct{}
}

// openAfter is a block that follows a change.
func openAfter(after, millis uint64, life string) open {
	return open{span: span{after: after, last: after, life: life}, at: place{revision: after}, floor: millis}
}

// millis is the time of the last change.
func (o *open) millis() uint64 { return cmp.Or(o.at.millis, o.floor) }

func (o *open) add(e *watch.Event) {
	if o.changes == 0 {
		o.marks = map[uint32]struct{}{}
	}
	if e.Origin == nil || e.Origin.UnixNanos <= 0 {
		o.untimed++
	}
	o.raw, o.at = appendChange(o.raw, e, o.at, o.floor)
	if o.changes == 0 {
		o.firstMillis = o.at.millis
	}
	o.changes++
	o.last, o.lastMillis, o.rawBytes = e.Revision, o.at.millis, uint64(len(o.raw))
	eachMark(e.Key, func(mark uint32) { o.marks[mark] = struct{}{} })
}

// eachMark tells the marks of a key: that of itself, and of each folder that it lies in.
func eachMark(key string, visit func(uint32)) {
	visit(markOf(key))
	for end, at := 0, 0; ; end += at + 1 {
		if at = strings.IndexByte(key[end:], '/'); at < 0 {
			return
		}
		if end+at > 0 {
			visit(markOf(key[:end+at+1]))
		}
	}
}

// markOf is the mark of a key or a folder. Different ones may share a mark: it says where to look, not what is there.
func markOf(key string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // it never fails
	return h.Sum32()
}

// encode returns the block as it lies on the disk.
func (o *open) encode(encoder *zstd.Encoder) (text []byte, headBytes, bodyBytes uint32) {
	head := wire.AppendUvarint(nil, o.after, o.last, o.firstMillis, o.lastMillis, o.changes, o.untimed, o.rawBytes)
	head = wire.AppendString(head, o.life)
	marks := make([]uint32, 0, len(o.marks))
	for mark := range o.marks {
		marks = append(marks, mark)
	}
	slices.Sort(marks)
	for _, mark := range marks {
		head = binary.LittleEndian.AppendUint32(head, mark)
	}
	text = append(make([]byte, frameBytes, frameBytes+len(head)+len(o.raw)/3), head...)
	text = encoder.EncodeAll(o.raw, text)
	headBytes, bodyBytes = uint32(len(head)), uint32(len(text)-frameBytes-len(head))
	copy(text, blockMagic[:])
	binary.LittleEndian.PutUint32(text[4:], headBytes)
	binary.LittleEndian.PutUint32(text[8:], bodyBytes)
	binary.LittleEndian.PutUint32(text[16:], wire.Checksum(text[frameBytes+len(head):]))
	binary.LittleEndian.PutUint32(text[12:], wire.Checksum(text[:12], text[16:frameBytes], head))
	return text, headBytes, bodyBytes
}

// frame is what stands in front of a block.
type frame struct {
	headBytes, bodyBytes uint32
	headSum, bodySum     uint32
}

func readFrame(b []byte) (frame, error) {
	f := frame{
		headBytes: binary.LittleEndian.Uint32(b[4:]), bodyBytes: binary.LittleEndian.Uint32(b[8:]),
		headSum: binary.LittleEndian.Uint32(b[12:]), bodySum: binary.LittleEndian.Uint32(b[16:]),
	}
	if [4]byte(b) != blockMagic || f.headBytes > headBytesMax || f.bodyBytes > blockRawBytesMax {
		return f, errDamaged
	}
	return f, nil
}

// readHead reads the head behind its frame; marks are sorted, four bytes each.
func readHead(framed []byte, f frame) (s span, marks []byte, err error) {
	head := framed[frameBytes:]
	if wire.Checksum(framed[:12], framed[16:frameBytes], head) != f.headSum {
		return s, nil, errDamaged
	}
	r := wire.NewReader(head)
	s.after, s.last, s.firstMillis, s.lastMillis = r.Uvarint(), r.Uvarint(), r.Uvarint(), r.Uvarint()
	s.changes, s.untimed, s.rawBytes = r.Uvarint(), r.Uvarint(), r.Uvarint()
	s.life = r.String()
	if r.Err() != nil || r.Len()%4 != 0 || s.after >= s.last || s.rawBytes > blockRawBytesMax {
		return s, nil, errDamaged
	}
	return s, head[len(head)-r.Len():], nil
}

// hasMark searches what readHead returned.
func hasMark(marks []byte, mark uint32) bool {
	_, found := sort.Find(len(marks)/4, func(i int) int { return cmp.Compare(mark, binary.LittleEndian.Uint32(marks[i*4:])) })
	return found
}

// decoder is shared by all readers; its memory is taken with the first answer.
var decoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(walksMax), zstd.WithDecoderMaxMemory(blockRawBytesMax),
		zstd.WithDecoderLowmem(true))
})

// inflate returns the changes of a body.
func inflate(body []byte, f frame, rawBytes uint64) ([]byte, error) {
	if wire.Checksum(body) != f.bodySum {
		return nil, errDamaged
	}
	d, err := decoder()
	if err != nil {
		return nil, err
	}
	raw, err := d.DecodeAll(body, make([]byte, 0, rawBytes))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return raw, nil
}

// eachChange reads the changes of a block, oldest first, until visit says false.
func eachChange(raw []byte, from place, visit func(*Change) bool) error {
	r := wire.NewReader(raw)
	at := from
	for r.Len() > 0 {
		var c Change
		if c, at = readChange(r, at); r.Err() != nil {
			break
		}
		if !visit(&c) {
			return nil
		}
	}
	if r.Err() != nil {
		return fmt.Errorf("%w: %w", errDamaged, r.Err())
	}
	return nil
}
