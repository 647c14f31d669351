package raftstore

import (
	"context"
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/replica"
	"github.com/setpoint-io/setpoint/raftstore/replica/birth"
)

const (
	// FeatureLevel is the highest that this release can apply. Who adds a log
	// operation or changes the format of entries or snapshots raises it, and uses
	// the new only once the root's FeatureLevel has reached it: the servers of a
	// rolling upgrade follow the oldest of them.
	// Level 2: the log and snapshots name the cluster's life. Level 3: logs are in segments. Level 4: servers remove what is purged.
	FeatureLevel = PurgesLevel

	// EncryptedValuesLevel is from when on values may have command.EncodingEncrypted.
	EncryptedValuesLevel = 2

	// PurgesLevel is from when on history may be purged: all servers know that such a write has values removed.
	PurgesLevel = 4

	// levelEvery is how often a leader asks the members whose level is not known to
	// be its own.
	levelEvery = 2 * time.Second
)

// ErrFeatureLevel: the state needs a newer release.
var ErrFeatureLevel = replica.ErrFeatureLevel

func levelError(needed, have uint64) error {
	return fmt.Errorf("%w: feature level %d, this release has %d", ErrFeatureLevel, needed, have)
}

// raiseLevel, on the leader, raises the cluster's feature level to what all its
// members can apply. It never falls. A cluster whose life has no name gets one then.
func (s *Store) raiseLevel() {
	for {
		l, changed := s.replica.Leadership()
		var again <-chan time.Time
		root := s.Root()
		nameless := root.FeatureLevel >= command.LifeLevel && root.Life == ""
		if l.Leader && (root.FeatureLevel < s.cfg.FeatureLevel || nameless) {
			if level := max(s.commonLevel(), root.FeatureLevel); level > root.FeatureLevel || nameless {
				s.proposeSystem(raised(level))
			}
			again = time.After(levelEvery)
		}
		select {
		case <-changed:
		case <-again:
		case <-s.ctx.Done():
			return
		}
	}
}

// raised raises the level, and names the life of a cluster that has no name for it.
func raised(level uint64) command.Op {
	op := command.Op{Kind: command.SetFeatureLevel, Revision: level}
	if level >= command.LifeLevel {
		op.Value = []byte(birth.Name())
	}
	return op
}

// commonLevel is the lowest level that any member agrees to, those without a vote included; 0
// if one does not answer. While nothing is stored, nobody could misread it, and who does
// not answer or holds does not count: so a new cluster begins with all that its founders can.
func (s *Store) commonLevel() uint64 {
	begun := s.Root().Len() > 0
	level := agreesTo(s.cfg.FeatureLevel, s.cfg.HoldFeatureLevel, begun)
	for _, server := range s.replica.Status().Servers {
		if server.ID == s.id() {
			continue
		}
		status, err := s.status(s.ctx, server.Server)
		if err != nil && !begun {
			continue
		}
		if err != nil {
			return 0
		}
		level = min(level, agreesTo(status.FeatureLevel, status.HeldLevel, begun))
	}
	return level
}

// agreesTo is the level to which a server agrees that can apply the highest and holds, if that is not 0, a cluster that has begun.
func agreesTo(highest, held uint64, begun bool) uint64 {
	if held == 0 || !begun {
		return highest
	}
	return min(highest, held)
}

// understands refuses a new member that would stop at once: its release is too old.
func (s *Store) understands(ctx context.Context, server Server) error {
	needed := s.Root().FeatureLevel
	if server.ID == s.id() || needed == 0 {
		return nil
	}
	status, err := s.status(ctx, server)
	if err == nil && status.FeatureLevel < needed {
		return fmt.Errorf("%w: %w: %s has feature level %d, the cluster is at %d: upgrade it first",
			ErrBadChange, ErrFeatureLevel, server.ID, status.FeatureLevel, needed)
	}
	return nil // one that does not answer is found out soon
}
