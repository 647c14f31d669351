package raftstore

import (
	"context"
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/replica"
)

const (
	// FeatureLevel is the highest that this release can apply. Who adds a log
	// operation or changes the format of entries or snapshots raises it, and uses
	// the new only once the root's FeatureLevel has reached it: the servers of a
	// rolling upgrade follow the oldest of them.
	FeatureLevel = 1

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
// members can apply. It never falls.
func (s *Store) raiseLevel() {
	for {
		l, changed := s.replica.Leadership()
		var again <-chan time.Time
		if l.Leader && s.Root().FeatureLevel < s.cfg.FeatureLevel {
			if level := s.commonLevel(); level > s.Root().FeatureLevel {
				s.proposeSystem(command.Op{Kind: command.SetFeatureLevel, Revision: level})
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

// commonLevel is the lowest level of all members, those without a vote included; 0
// if one does not answer.
func (s *Store) commonLevel() uint64 {
	level := s.cfg.FeatureLevel
	for _, server := range s.replica.Status().Servers {
		if server.ID == s.id() {
			continue
		}
		status, err := s.status(s.ctx, server.Server)
		if err != nil {
			return 0
		}
		level = min(level, status.FeatureLevel)
	}
	return level
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
