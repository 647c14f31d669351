package state

import (
	"math"

	"github.com/setpoint-io/setpoint/raftstore/command"
)

// Snapshot returns a snapshot of the objects alone, without sessions and history:
// who restores it has forgotten every client, and no watch goes on. Unlike
// State.Snapshot it may be called from anywhere.
func (r *Root) Snapshot() *Snapshot {
	return &Snapshot{root: r, historyStart: r.Revision}
}

// Hash returns the hash of all objects.
func (r *Root) Hash() [command.HashBytes]byte { return r.digest.Bytes() }

// Rebirth returns a snapshot of the same objects as the state after log entry
// index, by revisions later and in the cluster of the given id. Sessions and
// history are gone, so every client opens a new session and lists again. It
// reports false if the revision would not fit into a resource version.
func (r *Root) Rebirth(index, revisions uint64, clusterID string) (*Snapshot, bool) {
	if revisions > math.MaxInt64 || r.Revision > math.MaxInt64-revisions {
		return nil, false
	}
	reborn := *r
	reborn.Index, reborn.Revision, reborn.ClusterID = index, r.Revision+revisions, clusterID
	return reborn.Snapshot(), true
}

// ObjectsWritten is how many objects the WriteTo that runs has written, for its
// writer to know. The writer alone may ask.
func (s *Snapshot) ObjectsWritten() int { return s.objectsWritten }
