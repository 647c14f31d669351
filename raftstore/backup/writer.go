package backup

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"

	"github.com/setpoint-io/setpoint/raftstore/state"
	"github.com/setpoint-io/setpoint/raftstore/wire"
)

// recordOverheadBytes is about what an object takes beside its key and value.
const recordOverheadBytes = 48

// Write writes an archive of the objects. h needs Term and Time; the rest is filled
// in from the root, and returned.
func Write(out io.Writer, root *state.Root, h Header) (Header, error) {
	h.Revision, h.Index, h.FeatureLevel, h.ClusterID = root.Revision, root.Index, root.FeatureLevel, root.ClusterID
	h.Objects, h.Bytes = int64(root.Len()), sizeOf(root)
	w := &writer{out: out, sum: sha256.New(), snapshot: root.Snapshot()}
	w.emit([]byte(magic))
	w.block(h.append([]byte{headerBlock}))
	if _, err := w.snapshot.WriteTo(w); err != nil {
		return h, err
	}
	w.flush()
	f := footer{objects: h.Objects, snapshotBytes: w.snapshotBytes, hash: root.Hash(), sum: w.sum.Sum(nil)}
	w.block(f.append([]byte{footerBlock}))
	return h, w.err
}

// sizeOf is about how many bytes the objects take in an archive.
func sizeOf(root *state.Root) int64 {
	var total int64
	for record := range root.All("") {
		total += int64(len(record.Key)+len(record.UID)+len(record.Value)) + recordOverheadBytes
	}
	return total
}

// writer takes the bytes of a snapshot and writes them as blocks. After its first
// error it does nothing.
type writer struct {
	out           io.Writer
	sum           hash.Hash
	snapshot      *state.Snapshot
	pending       []byte
	snapshotBytes int64
	err           error
}

// Write implements io.Writer for the snapshot.
func (w *writer) Write(p []byte) (int, error) {
	w.snapshotBytes += int64(len(p))
	for rest := p; len(rest) > 0; {
		n := min(len(rest), dataBytes-len(w.pending))
		w.pending = append(w.pending, rest[:n]...)
		rest = rest[n:]
		if len(w.pending) == dataBytes {
			w.flush()
		}
	}
	return len(p), w.err
}

func (w *writer) flush() {
	if len(w.pending) == 0 {
		return
	}
	payload := wire.AppendUvarint([]byte{dataBlock}, uint64(w.snapshot.ObjectsWritten()))
	w.block(append(payload, w.pending...))
	w.pending = w.pending[:0]
}

func (w *writer) block(payload []byte) {
	var head [blockHeaderBytes]byte
	binary.LittleEndian.PutUint32(head[:4], uint32(len(payload)))
	binary.LittleEndian.PutUint32(head[4:], wire.Checksum(head[:4], payload))
	w.emit(head[:])
	w.emit(payload)
}

func (w *writer) emit(p []byte) {
	if w.err != nil {
		return
	}
	w.sum.Write(p) // a hash takes everything
	_, w.err = w.out.Write(p)
}
