package record

import (
	"encoding/binary"
	"math/bits"
)

// Digest is a number modulo 2^128. The digest of a set of records is the sum of
// theirs: it does not depend on order, and follows a change by one addition and
// one subtraction.
type Digest struct{ high, low uint64 }

// DigestFromBytes reads what Bytes wrote.
func DigestFromBytes(b [16]byte) Digest {
	return Digest{high: binary.BigEndian.Uint64(b[:8]), low: binary.BigEndian.Uint64(b[8:])}
}

// Bytes returns the digest as 16 bytes, most significant first.
func (d Digest) Bytes() (b [16]byte) {
	binary.BigEndian.PutUint64(b[:8], d.high)
	binary.BigEndian.PutUint64(b[8:], d.low)
	return b
}

// Plus returns d + o modulo 2^128.
func (d Digest) Plus(o Digest) Digest {
	low, carry := bits.Add64(d.low, o.low, 0)
	high, _ := bits.Add64(d.high, o.high, carry)
	return Digest{high: high, low: low}
}

// Minus returns d - o modulo 2^128.
func (d Digest) Minus(o Digest) Digest {
	low, borrow := bits.Sub64(d.low, o.low, 0)
	high, _ := bits.Sub64(d.high, o.high, borrow)
	return Digest{high: high, low: low}
}
