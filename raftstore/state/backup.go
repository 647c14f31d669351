package state

import (
	"math"

	"github.com/setpoint-io/setpoint/raftstore/command"
)

// Snapshot returns a snapshot of the objects alone, without sessions and history: a restore ends all client
// sessions and watches. Unlike State.Snapshot it may be called from anywhere.
func (r *Root) Snapshot() *Snapshot {
	return &Snapshot{root: r, historyStart: r.Revision}
}

// Hash returns the hash of all objects.
func (r *Root) Hash() [command.HashBytes]byte { return r.digest.Bytes() }

// Birth is where a next life begins, and what it is called.
type Birth struct {
	// Index is the log entry after which the state is as it begins, Revision its
	// revision.
	Index, Revision uint64
	// ClusterID, Life and FormerLife are those of the root.
	ClusterID, Life, FormerLife string
}

// Rebirth returns a snapshot of the same objects as the beginning of a next life.
// Sessions and history are gone, so every client opens a new session and lists again. It
// reports false if the revision is none that is later, or would not fit into a resource
// version.
func (r *Root) Rebirth(b Birth) (*Snapshot, bool) {
	if b.Revision > math.MaxInt64 || b.Revision <= r.Revision {
		return nil, false
	}
	reborn := *r
	reborn.Index, reborn.Revision, reborn.ClusterID = b.Index, b.Revision, b.ClusterID
	reborn.Life, reborn.FormerLife = b.Life, b.FormerLife
	reborn.FeatureLevel = max(r.FeatureLevel, command.LifeLevel)
	return reborn.Snapshot(), true
}

// ObjectsWritten is how many objects the WriteTo that runs has written, for its
// writer to know. The writer alone may ask.
func (s *Snapshot) ObjectsWritten() int { return s.objectsWritten }
