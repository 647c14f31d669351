package replica

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"runtime"

	"github.com/hashicorp/raft"
)

// checkedStable keeps term and vote with a checksum behind each value, under the
// disk guard. A changed vote would let a server vote twice.
type checkedStable struct {
	inner raft.StableStore
	guard *diskGuard
	// raftRuns is set before raft is the only caller.
	raftRuns bool
}

var _ raft.StableStore = (*checkedStable)(nil)

// Set implements raft.StableStore. Raft panics when its term cannot be written;
// the replica has stopped by then, so raft's main goroutine ends here instead.
func (c *checkedStable) Set(key, value []byte) error {
	err := c.write(key, value)
	if err != nil && c.raftRuns {
		runtime.Goexit()
	}
	return err
}

func (c *checkedStable) write(key, value []byte) error {
	sealed := binary.LittleEndian.AppendUint32(append([]byte(nil), value...), stableSum(key, value))
	// At its start raft writes the term it has just read.
	if stored, err := c.inner.Get(key); err == nil && bytes.Equal(stored, sealed) {
		return nil
	}
	return c.guard.write("vote", func() error { return c.inner.Set(key, sealed) })
}

// Get implements raft.StableStore. The error for a missing key is the library's:
// raft knows it by its text.
func (c *checkedStable) Get(key []byte) ([]byte, error) {
	sealed, err := c.inner.Get(key)
	if err != nil || len(sealed) == 0 {
		return nil, err
	}
	n := len(sealed) - checksumBytes
	if n < 0 || binary.LittleEndian.Uint32(sealed[n:]) != stableSum(key, sealed[:n]) {
		return nil, fmt.Errorf("%w: stable value %q", ErrCorrupt, key)
	}
	return sealed[:n:n], nil
}

// SetUint64 implements raft.StableStore.
func (c *checkedStable) SetUint64(key []byte, value uint64) error {
	return c.Set(key, binary.LittleEndian.AppendUint64(nil, value))
}

// GetUint64 implements raft.StableStore.
func (c *checkedStable) GetUint64(key []byte) (uint64, error) {
	value, err := c.Get(key)
	if err != nil || len(value) == 0 {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("%w: stable value %q has %d bytes", ErrCorrupt, key, len(value))
	}
	return binary.LittleEndian.Uint64(value), nil
}

func stableSum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

func isNotFound(err error) bool { return err != nil && err.Error() == "not found" }
