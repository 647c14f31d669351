package backup

import (
	"errors"
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/wire"
)

// The archive, version 1: the magic, then blocks of u32 length | u32 CRC-32C |
// payload, little endian; the checksum covers length and payload. A payload is a
// kind and what the kind says:
//
//	header  once, first: format | revision | index | term | feature level |
//	        cluster id | unix time in ms | objects | bytes
//	data    objects up to here | a piece of a snapshot of package state
//	footer  once, last: objects | snapshot bytes | state hash | SHA-256 of all
//	        bytes of the archive before the footer's block
const (
	magic = "setpoint backup\n"
	// formatVersion is the one this binary writes, and the newest it reads.
	formatVersion = 1

	blockHeaderBytes = 8
	// dataBytes is how much of the snapshot goes into one block.
	dataBytes = 1 << 20
	// maxBlockBytes is what a reader accepts.
	maxBlockBytes = dataBytes + 64
)

const (
	headerBlock byte = 1
	dataBlock   byte = 2
	footerBlock byte = 3
)

var (
	// ErrDamaged: the archive is changed, cut short, or none.
	ErrDamaged = errors.New("damaged backup")
	// ErrNewer: the archive was written by a newer release in a format that this
	// one does not know.
	ErrNewer = errors.New("backup of a newer format")
)

// Header says what is in an archive.
type Header struct {
	// Revision is the cut: the archive holds what was committed up to it.
	Revision uint64
	// Index and Term are of the log when the archive was made.
	Index, Term uint64
	// FeatureLevel is what a server must understand to load the archive.
	FeatureLevel uint64
	// ClusterID is the store's identity.
	ClusterID string
	// Time is when the archive was begun, by the clock of the server.
	Time time.Time
	// Objects is their number; Bytes is about how long the archive will be.
	Objects, Bytes int64
}

func (h *Header) append(b []byte) []byte {
	b = wire.AppendUvarint(b, formatVersion, h.Revision, h.Index, h.Term, h.FeatureLevel)
	b = wire.AppendString(b, h.ClusterID)
	return wire.AppendUvarint(b, uint64(h.Time.UnixMilli()), uint64(h.Objects), uint64(h.Bytes))
}

func readHeader(r *wire.Reader) (h Header, err error) {
	if format := r.Uvarint(); format > formatVersion && r.Err() == nil {
		return h, fmt.Errorf("%w: %d, this release reads up to %d", ErrNewer, format, formatVersion)
	}
	h.Revision, h.Index, h.Term, h.FeatureLevel = r.Uvarint(), r.Uvarint(), r.Uvarint(), r.Uvarint()
	h.ClusterID = r.String()
	h.Time = time.UnixMilli(int64(r.Uvarint())).UTC()
	h.Objects, h.Bytes = int64(r.Uvarint()), int64(r.Uvarint())
	return h, r.Err()
}

// footer closes an archive.
type footer struct {
	objects, snapshotBytes int64
	hash                   [command.HashBytes]byte
	sum                    []byte
}

func (f *footer) append(b []byte) []byte {
	b = wire.AppendUvarint(b, uint64(f.objects), uint64(f.snapshotBytes))
	b = append(b, f.hash[:]...)
	return wire.AppendString(b, f.sum)
}

func readFooter(r *wire.Reader) (f footer, err error) {
	f.objects, f.snapshotBytes = int64(r.Uvarint()), int64(r.Uvarint())
	for i := range f.hash {
		f.hash[i] = r.Byte()
	}
	f.sum = append([]byte(nil), r.Bytes()...)
	return f, r.Err()
}
