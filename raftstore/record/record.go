package record

import (
	"crypto/sha256"
	"encoding/binary"
	"sync/atomic"
)

// Record is one object of the store at one revision. Do not change one, nor the
// bytes of its Value: readers share it.
type Record struct {
	Key, UID string
	// Value begins with an encoding byte of package command.
	Value []byte
	// CreateRevision is the revision that put the key when it was absent;
	// ModRevision the one that put this value.
	CreateRevision, ModRevision uint64

	digest Digest
	memo   atomic.Value
}

// Seal computes the record's digest. The maker of a record calls it once, after the fields are set and before
// the record is shared.
func (r *Record) Seal() *Record {
	// The lengths come first, so that no two records hash the same bytes.
	b := make([]byte, 0, headBytes)
	for _, n := range []uint64{uint64(len(r.Key)), uint64(len(r.UID)), r.CreateRevision, r.ModRevision} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	b = append(append(b, r.Key...), r.UID...)
	h := sha256.New()
	h.Write(b)
	h.Write(r.Value)
	r.digest = DigestFromBytes([16]byte(h.Sum(b[:0])))
	return r
}

// headBytes is enough for the part of most records before the value; longer keys
// make Seal allocate.
const headBytes = 192

// Digest returns the digest computed by Seal.
func (r *Record) Digest() Digest { return r.digest }

// Memo returns what SetMemo left, or nil.
func (r *Record) Memo() any { return r.memo.Load() }

// SetMemo leaves v with the record unless something is there already, and
// returns what is there then. So of several that decode at once all go on with
// the same object. All memos of one record have one type.
func (r *Record) SetMemo(v any) any {
	if r.memo.CompareAndSwap(nil, v) {
		return v
	}
	return r.memo.Load()
}

// Bytes returns what the record occupies, in bytes, for limits on memory.
func (r *Record) Bytes() int { return len(r.Key) + len(r.UID) + len(r.Value) }
