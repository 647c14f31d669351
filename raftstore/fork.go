package raftstore

import (
	"context"

	"github.com/setpoint-io/setpoint/raftstore/replica"
)

// Memory is a disk in memory for one server. What it holds ends with the process.
type Memory = replica.Memory

// NewMemory returns an empty one, for a server without peers if it is alone: only that can be forked.
func NewMemory(alone bool) *Memory {
	m := replica.NewMemory()
	m.Alone = alone
	return m
}

// Disk is where a store lies; see Config.Disk.
type Disk = replica.Disk

// MemoryDisk is the Config.Disk of a Memory.
func MemoryDisk(m *Memory) Disk { return replica.MemoryDisk{Memory: m} }

// Fork returns a disk with what this store holds, every write included that was acknowledged before the call.
// A store with the same Config that opens it goes on from there by itself: its revisions continue, watches and
// sessions are its own. Nothing is copied that neither of them changes. It fails unless the store is on a
// Memory and has no peers.
func (s *Store) Fork(ctx context.Context) (*Memory, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return s.replica.Fork(ctx)
}
