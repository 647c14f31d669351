package entrysum

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/hashicorp/raft"
)

const checksumBytes = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Seal returns a copy with the checksum behind its extensions.
func Seal(l *raft.Log) *raft.Log {
	sealed := *l
	sealed.Extensions = make([]byte, 0, len(l.Extensions)+checksumBytes)
	sealed.Extensions = append(sealed.Extensions, l.Extensions...)
	sealed.Extensions = binary.LittleEndian.AppendUint32(sealed.Extensions, Sum(l))
	return &sealed
}

// Unseal takes the checksum off again and reports whether it was there and right.
func Unseal(l *raft.Log) bool {
	n := len(l.Extensions) - checksumBytes
	if n < 0 {
		return false
	}
	sum := binary.LittleEndian.Uint32(l.Extensions[n:])
	l.Extensions = l.Extensions[:n:n]
	if n == 0 {
		l.Extensions = nil
	}
	return sum == Sum(l)
}

// Sum covers what raft and the state depend on.
func Sum(l *raft.Log) uint32 {
	var head [21]byte
	binary.LittleEndian.PutUint64(head[0:], l.Index)
	binary.LittleEndian.PutUint64(head[8:], l.Term)
	head[16] = byte(l.Type)
	binary.LittleEndian.PutUint32(head[17:], uint32(len(l.Data)))
	sum := crc32.Checksum(head[:], castagnoli)
	sum = crc32.Update(sum, castagnoli, l.Data)
	return crc32.Update(sum, castagnoli, l.Extensions)
}

// Same reports whether two entries mean the same to raft and the state.
func Same(a, b *raft.Log) bool {
	return a.Index == b.Index && a.Term == b.Term && a.Type == b.Type && bytes.Equal(a.Data, b.Data) && bytes.Equal(a.Extensions, b.Extensions)
}
