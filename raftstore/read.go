package raftstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/forward"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// readLimit bounds one ReadIndex whose context has no deadline.
const readLimit = 30 * time.Second

// ReadIndex returns a state that has every write acknowledged before the call, on
// any replica. Errors wrap ErrNoLeader, ErrStopped or the context's error.
func (s *Store) ReadIndex(ctx context.Context) (*state.Root, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	revision, err := s.readRevision(ctx)
	if err != nil {
		return nil, err
	}
	return s.WaitRevision(ctx, revision)
}

// readRevision asks until some leader answers.
func (s *Store) readRevision(ctx context.Context) (revision uint64, err error) {
	for {
		if err := s.check(); err != nil {
			return 0, err
		}
		l, changed := s.replica.Leadership()
		var retry <-chan time.Time
		switch {
		case l.Leader:
			revision, err = s.confirm.get(ctx)
		case l.Ready:
			revision, err = s.ask.get(ctx)
		default:
			err = ErrNoLeader
		}
		if err == nil {
			return revision, nil
		}
		if l.Ready {
			retry = time.After(retryPause)
		}
		select {
		case <-retry:
		case <-changed:
		case <-s.stopping:
		case <-s.replica.Failing():
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: %w (%w)", ErrNoLeader, ctx.Err(), err)
		}
	}
}

// confirmRevision is the leader's part: its revision, then proof that no other
// leader can have acknowledged more before that. The order matters.
func (s *Store) confirmRevision() (uint64, error) {
	l := s.Leadership()
	if !l.Leader {
		return 0, ErrNotLeader
	}
	if err := s.check(); err != nil {
		return 0, err
	}
	revision := s.Root().Revision
	if err := s.replica.ConfirmLeader(s.ctx, l.Term); err != nil {
		return 0, err
	}
	return revision, nil
}

// askRevision is a follower's part.
func (s *Store) askRevision() (uint64, error) {
	l := s.Leadership()
	if !l.Ready || l.Leader {
		return 0, ErrNoLeader
	}
	ctx, cancel := context.WithTimeout(s.ctx, forwardLimit)
	defer cancel()
	ctx, stop := s.whileLed(ctx, l)
	defer stop()
	revision, err := s.peers.ReadIndex(ctx, forward.Peer{ID: l.LeaderID, Address: l.LeaderAddress})
	if err != nil && errors.Is(context.Cause(ctx), ErrNotLeader) {
		return 0, ErrNotLeader
	}
	return revision, err
}
