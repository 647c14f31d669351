package raftstore

import "context"

// Progress returns when the loop that all of raft goes through has turned once, and fails if ctx ends before, or if the replica stops.
func (s *Store) Progress(ctx context.Context) error { return s.replica.Turned(ctx) }
