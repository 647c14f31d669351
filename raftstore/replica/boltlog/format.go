package boltlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/hashicorp/raft"
)

const (
	// formatChunks begins the first chunk of an entry:
	//
	//	u8 format | u8 type | uvarint term | varint time of appending, in ns since 1970,
	//	0 for none | uvarint count | extensions | data
	formatChunks = 1
	// formatMsgpack and above begin an entry of the old form, whole under one key:
	// a map of msgpack.
	formatMsgpack = 0x80
)

var errMalformed = errors.New("entry is cut short")

// headBytes bounds what appendHead appends beside the extensions.
const headBytes = 2 + 3*binary.MaxVarintLen64

// appendHead appends what comes before the data.
func appendHead(b []byte, l *raft.Log) []byte {
	b = append(b, formatChunks, byte(l.Type))
	b = binary.AppendUvarint(b, l.Term)
	var appended int64
	if !l.AppendedAt.IsZero() {
		appended = l.AppendedAt.UnixNano()
	}
	b = binary.AppendVarint(b, appended)
	b = binary.AppendUvarint(b, uint64(len(l.Extensions)))
	return append(b, l.Extensions...)
}

// decode reads an entry. It copies what it keeps.
func decode(index uint64, chunks [][]byte, out *raft.Log) error {
	first := chunks[0]
	switch {
	case len(first) < 2:
		return errMalformed
	case first[0] >= formatMsgpack && len(chunks) == 1:
		return codec.NewDecoder(bytes.NewReader(first), &codec.MsgpackHandle{}).Decode(out)
	case first[0] != formatChunks:
		return fmt.Errorf("entry of format %d", first[0])
	}
	*out = raft.Log{Index: index, Type: raft.LogType(first[1])}
	rest := first[2:]
	term, n := binary.Uvarint(rest)
	if n <= 0 {
		return errMalformed
	}
	rest = rest[n:]
	appended, n := binary.Varint(rest)
	if n <= 0 {
		return errMalformed
	}
	rest = rest[n:]
	extensions, n := binary.Uvarint(rest)
	if n <= 0 || extensions > uint64(len(rest)-n) {
		return errMalformed
	}
	rest = rest[n:]
	out.Term = term
	if appended != 0 {
		out.AppendedAt = time.Unix(0, appended)
	}
	out.Extensions = append([]byte(nil), rest[:extensions]...)
	out.Data = join(rest[extensions:], chunks[1:])
	return nil
}

// join puts the data together, nil if there are none.
func join(first []byte, others [][]byte) []byte {
	size := len(first)
	for _, chunk := range others {
		size += len(chunk)
	}
	if size == 0 {
		return nil
	}
	data := append(make([]byte, 0, size), first...)
	for _, chunk := range others {
		data = append(data, chunk...)
	}
	return data
}
