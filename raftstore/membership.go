package raftstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/forward"
)

const (
	// catchUpPoll is how often a joining server is asked how far it is.
	catchUpPoll = 50 * time.Millisecond
	// contactLimit is how recently a voter must have answered to count as live.
	contactLimit = 2 * time.Second
)

// ErrUnsafe: the change of membership could cost the quorum.
var ErrUnsafe = errors.New("change of membership is not safe now")

// waitCaughtUp asks the server until it has applied the log up to index.
func (s *Store) waitCaughtUp(ctx context.Context, server Server, index uint64) error {
	for {
		status, err := s.peers.Status(ctx, forward.Peer{ID: server.ID, Address: server.Address})
		if err == nil && status.AppliedIndex >= index {
			return nil
		}
		select {
		case <-time.After(catchUpPoll):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-s.stopping:
			return ErrStopped
		}
	}
}

func (s *Store) removeServer(ctx context.Context, name string) error {
	if name == s.cfg.Name {
		return fmt.Errorf("%w: %s leads; hand leadership over first", ErrUnsafe, name)
	}
	if err := s.quorumWithout(name); err != nil {
		return err
	}
	return s.replica.RemoveServer(ctx, name)
}

// quorumWithout checks that the voters left make a quorum that answers.
func (s *Store) quorumWithout(name string) error {
	voters, live, found := 0, 0, false
	for _, server := range s.Status().Servers {
		if server.ID == name {
			found = true
			continue
		}
		if !server.Voter {
			continue
		}
		voters++
		if server.ID == s.cfg.Name || time.Since(server.LastContact) < contactLimit {
			live++
		}
	}
	switch {
	case !found:
		return fmt.Errorf("no server %s", name)
	case live <= voters/2:
		return fmt.Errorf("%w: %d of the %d voters left answer", ErrUnsafe, live, voters)
	}
	return nil
}
