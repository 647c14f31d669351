package segments

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/hashicorp/raft"
)

// A record lies at a multiple of recordAlign and is a head of recordHeadBytes, the data and the extensions of an
// entry, and zeros up to the next multiple. Numbers are little-endian.
//
//	0  uint32  checksum of the head: over the segment's secret, the record's offset, and the rest of the head
//	4  uint32  bytes of data
//	8  uint32  bytes of extensions
//	12 uint8   kind
//	13 uint8   raft's type of the entry
//	14 uint16  0
//	16 uint64  index
//	24 uint64  term
//	32 int64   when the leader appended it, in nanoseconds since 1970; 0 is none
//	40 uint32  offset of the first record of the same append
//	44 uint32  checksum of what follows the head
//
// The head has a checksum of its own because a scan looks for heads among bytes that users chose. They do not know the
// secret, so they cannot make a head whose length would have to be believed.
const (
	recordHeadBytes = 48
	recordAlign     = 8
	// batchBytesMax bounds the records of one append, whose offsets have 32 bits.
	batchBytesMax = 1 << 30
)

// kind is what a record is. Zero is none, which unused space shows.
type kind uint8

const (
	kindNone kind = iota
	// kindEntry is an entry. Its index follows that of the entry before it.
	kindEntry
	// kindForget says that there are no entries from its index on.
	kindForget
	// kindEnd ends a segment: the next one has been made, or is about to be.
	kindEnd
	// kindClosed says that all before it was synced, and that the log was closed.
	kindClosed
	kindLimit
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// head is the head of a record, but for its checksum.
type head struct {
	dataBytes, extensionBytes uint32
	kind                      kind
	logType                   raft.LogType
	index, term               uint64
	appendedAt                int64
	// batch is the offset of the first record of the same append.
	batch uint32
}

// size is how many bytes the record takes.
func (h head) size() int64 {
	return aligned(recordHeadBytes + int64(h.dataBytes) + int64(h.extensionBytes))
}

func aligned(n int64) int64 { return (n + recordAlign - 1) &^ (recordAlign - 1) }

func entryHead(l *raft.Log, batch uint32) head {
	h := head{
		dataBytes: uint32(len(l.Data)), extensionBytes: uint32(len(l.Extensions)), kind: kindEntry, logType: l.Type,
		index: l.Index, term: l.Term, batch: batch,
	}
	if !l.AppendedAt.IsZero() {
		h.appendedAt = l.AppendedAt.UnixNano()
	}
	return h
}

// appendRecord appends a record that will lie at offset.
func (s secret) appendRecord(b []byte, offset int64, h head, data, extensions []byte) []byte {
	start := len(b)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint32(b, h.dataBytes)
	b = binary.LittleEndian.AppendUint32(b, h.extensionBytes)
	b = append(b, byte(h.kind), byte(h.logType), 0, 0)
	b = binary.LittleEndian.AppendUint64(b, h.index)
	b = binary.LittleEndian.AppendUint64(b, h.term)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.appendedAt))
	b = binary.LittleEndian.AppendUint32(b, h.batch)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = append(append(b, data...), extensions...)
	b = append(b, make([]byte, int(h.size())-(len(b)-start))...)
	record := b[start:]
	binary.LittleEndian.PutUint32(record[44:], crc32.Checksum(record[recordHeadBytes:], castagnoli))
	binary.LittleEndian.PutUint32(record, s.sum(offset, record))
	return b
}

// head reads the head at the beginning of b, which was read at an offset. It reports whether one was written there, of a
// record that ends within room bytes.
func (s secret) head(b []byte, offset, room int64) (h head, ok bool) {
	if len(b) < recordHeadBytes {
		return head{}, false
	}
	h = head{
		dataBytes: binary.LittleEndian.Uint32(b[4:]), extensionBytes: binary.LittleEndian.Uint32(b[8:]),
		kind: kind(b[12]), logType: raft.LogType(b[13]),
		index: binary.LittleEndian.Uint64(b[16:]), term: binary.LittleEndian.Uint64(b[24:]),
		appendedAt: int64(binary.LittleEndian.Uint64(b[32:])), batch: binary.LittleEndian.Uint32(b[40:]),
	}
	ok = h.kind > kindNone && h.kind < kindLimit && h.size() <= room && binary.LittleEndian.Uint32(b) == s.sum(offset, b)
	return h, ok
}

// bodyIsWhole reports whether what follows the head of a record is what was written.
func bodyIsWhole(record []byte) bool {
	return binary.LittleEndian.Uint32(record[44:]) == crc32.Checksum(record[recordHeadBytes:], castagnoli)
}

// entry makes an entry of a whole record, whose bytes it keeps.
func (h head) entry(record []byte) raft.Log {
	dataEnd := recordHeadBytes + int(h.dataBytes)
	extensionsEnd := dataEnd + int(h.extensionBytes)
	l := raft.Log{Index: h.index, Term: h.term, Type: h.logType}
	if h.dataBytes > 0 {
		l.Data = record[recordHeadBytes:dataEnd:dataEnd]
	}
	if h.extensionBytes > 0 {
		l.Extensions = record[dataEnd:extensionsEnd:extensionsEnd]
	}
	if h.appendedAt != 0 {
		l.AppendedAt = time.Unix(0, h.appendedAt)
	}
	return l
}

// secret is what the checksums of a segment begin with. It is another one each time a segment is made, so that
// records of the file's former life are none of this one's.
type secret [16]byte

// sum is the checksum of the head of a record at an offset.
func (s secret) sum(offset int64, record []byte) uint32 {
	var b [24 + recordHeadBytes - 4]byte
	copy(b[:], s[:])
	binary.LittleEndian.PutUint64(b[16:], uint64(offset))
	copy(b[24:], record[4:recordHeadBytes])
	return crc32.Checksum(b[:], castagnoli)
}
