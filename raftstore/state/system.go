package state

import (
	"math"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/record"
)

// system performs an operation on the store itself.
func (s *State) system(op *command.Op) command.Result {
	switch op.Kind {
	case command.OpenSession:
		return command.Result{Code: command.OK, Revision: s.sessions.start(s.meta.index)}
	case command.CloseSession:
		s.sessions.end(op.Revision)
	case command.StateHash:
		s.compare(op.Revision, record.DigestFromBytes([command.HashBytes]byte(op.Value)))
	case command.BumpRevision:
		return s.bump(op.Revision)
	case command.SetFeatureLevel:
		s.meta.featureLevel = max(s.meta.featureLevel, op.Revision)
		s.nameLife(string(op.Value))
	case command.SetClusterID:
		return s.setClusterID(string(op.Value))
	default: // none that can be decoded (TestEverySystemOperationIsPerformed)
		return s.refuse(command.Rejected, "unknown operation")
	}
	return command.Result{Code: command.OK, Revision: s.meta.revision}
}

// bump leaves a gap in the revisions, so that no cache can take what it knows
// for the present, and starts the history anew behind it.
func (s *State) bump(by uint64) command.Result {
	if by > math.MaxInt64-s.meta.revision {
		return s.refuse(command.Rejected, "revision would not fit into a resource version")
	}
	if by > 0 {
		s.meta.revision += by
		s.entry.events = nil
		s.entry.restart, s.entry.restartRevision = true, s.meta.revision
	}
	return command.Result{Code: command.OK, Revision: s.meta.revision}
}

func (s *State) setClusterID(id string) command.Result {
	if s.meta.clusterID != "" && s.meta.clusterID != id {
		return s.refuse(command.PreconditionFailed, "cluster already has the id "+s.meta.clusterID)
	}
	s.meta.clusterID = id
	return command.Result{Code: command.OK, Revision: s.meta.revision}
}

// nameLife names the life of a state that has no name for it.
func (s *State) nameLife(life string) {
	if s.meta.featureLevel >= command.LifeLevel && s.meta.life == "" {
		s.meta.life = life
	}
}

// compare reports what hash the objects at the revision had here. Where the history
// does not reach back, there is nothing to compare. The result of the operation never
// depends on the outcome: it is the same everywhere.
func (s *State) compare(revision uint64, want record.Digest) {
	if s.options.OnComparison == nil {
		return
	}
	got, ok := s.digestAt(revision)
	if ok || revision > s.meta.revision {
		s.options.OnComparison(Comparison{
			Index: s.meta.index, Revision: revision, Want: want.Bytes(), Got: got.Bytes(),
		})
	}
}

// digestAt takes the changes since the revision back out of the digest: those of
// this entry, then those in the ring.
func (s *State) digestAt(revision uint64) (record.Digest, bool) {
	digest := s.digest
	if revision > s.meta.revision || s.entry.restart && revision < s.entry.restartRevision {
		return record.Digest{}, false
	}
	digest = undoDigest(digest, s.entry.events, revision)
	if s.entry.restart {
		return digest, true
	}
	events, err := s.ring.Since(revision)
	if err != nil {
		return record.Digest{}, false
	}
	return undoDigest(digest, events, revision), true
}
