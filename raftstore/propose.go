package raftstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/forward"
	"github.com/setpoint-io/setpoint/raftstore/replica"
)

const (
	// proposeLimit bounds a Propose whose context has no deadline.
	proposeLimit = 60 * time.Second
	// forwardLimit bounds one request to the leader.
	forwardLimit = 10 * time.Second
	// retryPause is the least time between two tries; news of a leader ends it.
	retryPause = 10 * time.Millisecond
)

// Propose commits the command and returns its result, from any replica. It fills
// in Session and Sequence, and sends again under the same ones when a leader is
// lost, so the command takes effect at most once.
//
// A result with a code other than OK is no error. Errors wrap command.ErrInvalid,
// ErrOverloaded, ErrNoSpace, ErrNoLeader or ErrStopped when the command did not take effect,
// and ErrOutcomeUnknown when it may have.
func (s *Store) Propose(ctx context.Context, c command.Command) (command.Result, error) {
	if err := c.Validate(); err != nil {
		return command.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, proposeLimit)
	defer cancel()
	for {
		ticket, err := s.sessions.take(ctx)
		if err != nil {
			return command.Result{}, err
		}
		c.Session, c.Sequence = ticket.session.id, ticket.sequence
		result, resent, err := s.deliver(ctx, c)
		ticket.finish()
		if err != nil {
			return command.Result{}, err
		}
		switch result.Code {
		case command.SessionUnknown:
			s.sessions.drop(ticket.session)
			if !resent {
				continue
			}
			return command.Result{}, fmt.Errorf("%w: %s", ErrOutcomeUnknown, result.Message)
		case command.TooOld:
			return command.Result{}, fmt.Errorf("%w: %s", ErrOutcomeUnknown, result.Message)
		}
		return result, nil
	}
}

// deliver sends a command until it has a result. resent says that an earlier try
// may have taken effect. Errors are those of Propose.
func (s *Store) deliver(ctx context.Context, c command.Command) (result command.Result, resent bool, err error) {
	var over <-chan struct{}
	for {
		if err := s.check(); err != nil {
			return result, resent, outcomeError(resent, err)
		}
		l, changed := s.replica.Leadership()
		var retry <-chan time.Time
		switch {
		case l.Leader:
			if err = s.admit(&c); err == nil {
				result, err = s.local.submit(ctx, c)
			}
		case l.Ready:
			result, err = s.remote.submit(ctx, c)
		default:
			err = fmt.Errorf("%w: %w", forward.ErrNotProposed, ErrNoLeader)
		}
		if err == nil {
			return result, resent, nil
		}
		resent = resent || !errors.Is(err, forward.ErrNotProposed)
		// What may be in the log already has to learn its result.
		c.Essential = c.Essential || resent
		if refusedForGood(err) && !resent {
			return result, false, err
		}
		if l.Ready {
			retry = time.After(retryPause)
		}
		if over == nil {
			var done func()
			over, done = s.patience()
			defer done()
		}
		select {
		case <-retry:
		case <-changed:
		case <-over:
			return result, resent, outcomeError(resent, fmt.Errorf("%w (%w)", errLeaderless, err))
		case <-s.stopping:
		case <-s.replica.Failing():
		case <-ctx.Done():
			return result, resent, outcomeError(resent, fmt.Errorf("%w (%w)", ctx.Err(), err))
		}
	}
}

// outcomeError says what is known of a command that got no result.
func outcomeError(sent bool, err error) error {
	if sent {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	return err
}

// shipToLog puts a batch into the log as one entry.
func (s *Store) shipToLog(ctx context.Context, commands []command.Command) []forward.Outcome {
	entry := &command.Entry{FormatVersion: command.FormatVersion, Term: s.replica.Term(), Commands: commands}
	results, err := s.replica.Propose(ctx, entry)
	if errors.Is(err, replica.ErrNotProposed) {
		return forward.AllFailed(len(commands), fmt.Errorf("%w: %w", forward.ErrNotProposed, err))
	}
	if err != nil {
		return forward.AllFailed(len(commands), fmt.Errorf("%w: %w", ErrOutcomeUnknown, err))
	}
	outcomes := make([]forward.Outcome, len(commands))
	for i := range outcomes {
		outcomes[i].Result = results[i]
	}
	return outcomes
}

// shipToLeader sends a batch to the leader.
func (s *Store) shipToLeader(ctx context.Context, commands []command.Command) []forward.Outcome {
	l := s.Leadership()
	if !l.Ready || l.Leader {
		return forward.AllFailed(len(commands), fmt.Errorf("%w: %w", forward.ErrNotProposed, ErrNoLeader))
	}
	ctx, cancel := context.WithTimeout(ctx, forwardLimit)
	defer cancel()
	ctx, stop := s.whileLed(ctx, l)
	defer stop()
	return s.peers.Propose(ctx, forward.Peer{ID: l.LeaderID, Address: l.LeaderAddress}, commands)
}

// openSession asks the log for a new session. A session opened in vain by a lost
// try is evicted in time.
func (s *Store) openSession(ctx context.Context) (uint64, error) {
	result, _, err := s.deliver(ctx, command.Command{
		Actor: command.Actor{User: "system:raftstore"},
		Ops:   []command.Op{{Kind: command.OpenSession}},
	})
	if err != nil {
		return 0, fmt.Errorf("opening a session: %w", notApplied(err))
	}
	return result.Revision, nil
}

// notApplied takes ErrOutcomeUnknown out of an error: of the session it is
// unknown, but the caller's command was not sent.
func notApplied(err error) error {
	if errors.Is(err, ErrOutcomeUnknown) {
		return fmt.Errorf("%w: %s", ErrNoLeader, err)
	}
	return err
}
