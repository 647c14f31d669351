package heldstate

import (
	"errors"
	"io"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/state"
)

// source stands for the bytes of a snapshot that are never written.
type source struct{ snapshot *state.Snapshot }

var errHeld = errors.New("this snapshot is a state in memory and has no bytes")

// Source returns what stands for a state.
func Source(s *state.Snapshot) io.ReadCloser { return source{s} }

// Read implements io.Reader; Restore asks Of first.
func (source) Read([]byte) (int, error) { return 0, errHeld }

// Close implements io.Closer.
func (source) Close() error { return nil }

// Of returns the state that a source stands for, or nil. Raft wraps sources to count what is read.
func Of(from io.ReadCloser) *state.Snapshot {
	for {
		switch s := from.(type) {
		case source:
			return s.snapshot
		case raft.ReadCloserWrapper:
			from = s.WrappedReadCloser()
		default:
			return nil
		}
	}
}
