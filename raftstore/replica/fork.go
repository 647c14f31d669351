package replica

import (
	"context"
	"errors"
)

// ErrNoFork says that a replica cannot be forked: its disk is not a Memory, or it has peers.
var ErrNoFork = errors.New("only a replica in memory and without peers can be forked")

// Fork returns a disk in memory with what this replica holds now. A replica with the same Config that opens it
// goes on from there by itself. Nothing is copied that neither of them changes.
func (r *Replica) Fork(ctx context.Context) (*Memory, error) {
	disk, ok := r.cfg.Disk.(MemoryDisk)
	if !ok || !disk.Memory.Alone {
		return nil, ErrNoFork
	}
	if !r.started() {
		return nil, ErrNotLeader
	}
	if err := r.Snapshot(ctx); err != nil {
		return nil, err
	}
	return disk.Memory.image(), nil
}
