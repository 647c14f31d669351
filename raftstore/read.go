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

// ReadIndex returns a state that has every write acknowledged before the call, and
// everything that any replica showed before it. Errors wrap ErrNoLeader, ErrStopped or the context's error.
func (s *Store) ReadIndex(ctx context.Context) (*state.Root, error) {
	l, _ := s.replica.Leadership()
	revision, err := s.readRevisionFrom(ctx, l)
	if root := s.Root(); err == nil && root.Revision >= revision {
		return root, nil // most reads end here, without a timer of their own
	}
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	if err != nil {
		if revision, err = s.readRevision(ctx); err != nil {
			return nil, err
		}
	}
	return s.WaitRevision(ctx, revision)
}

// readRevision asks until some leader answers.
func (s *Store) readRevision(ctx context.Context) (revision uint64, err error) {
	var over <-chan struct{}
	for {
		if err := s.check(); err != nil {
			return 0, err
		}
		l, changed := s.replica.Leadership()
		if revision, err = s.readRevisionFrom(ctx, l); err == nil {
			return revision, nil
		}
		if over == nil {
			var done func()
			over, done = s.patience()
			defer done()
		}
		var retry <-chan time.Time
		if l.Ready {
			retry = time.After(retryPause)
		}
		select {
		case <-retry:
		case <-changed:
		case <-s.stopping:
		case <-s.replica.Failing():
		case <-over:
			return 0, fmt.Errorf("%w (%w)", errLeaderless, err)
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: %w (%w)", ErrNoLeader, ctx.Err(), err)
		}
	}
}

// readRevisionFrom asks the leader that is known, once.
func (s *Store) readRevisionFrom(ctx context.Context, l Leadership) (uint64, error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	switch {
	case l.Leader:
		return s.confirm.get(ctx)
	case l.Ready:
		return s.ask.get(ctx)
	default:
		return 0, ErrNoLeader
	}
}

// confirmRevision is the leader's part: the revision of all that is committed, then proof
// that no other leader can have committed more before that. The order matters.
func (s *Store) confirmRevision(readers int) (uint64, error) {
	l := s.Leadership()
	if !l.Leader {
		return 0, ErrNotLeader
	}
	if err := s.check(); err != nil {
		return 0, err
	}
	root, err := s.waitCommitted(s.ctx)
	if err != nil {
		return 0, err
	}
	round := s.quorum.begin()
	if readers < quorumProofReaders || !s.quorum.await(s.ctx, l.Term, round) {
		if err := s.replica.ConfirmLeader(s.ctx, l.Term); err != nil {
			return 0, err
		}
	}
	s.contact.Prove()
	return root.Revision, nil
}

// vouchedRevision is the leader's answer to a follower whose word, with its own, is a
// quorum: nobody else needs to be asked. It came after the reads began, so the order
// does not matter.
func (s *Store) vouchedRevision(ctx context.Context, word forward.Word) (answer forward.Answer, proved bool) {
	l := s.Leadership()
	if !l.Leader || l.Term != word.Term {
		return forward.Answer{}, false
	}
	root, err := s.waitCommitted(ctx)
	if err != nil || !s.replica.VouchedFor(word.Term, word.ID) {
		return forward.Answer{}, false
	}
	return forward.Answer{Revision: root.Revision, Round: s.quorum.heard(word.Term, word.Seen)}, true
}

// askRevision is a follower's part.
func (s *Store) askRevision(int) (uint64, error) {
	word := s.word()
	l := s.Leadership()
	if !l.Ready || l.Leader {
		return 0, ErrNoLeader
	}
	ctx, cancel := context.WithTimeout(s.ctx, forwardLimit)
	defer cancel()
	ctx, stop := s.whileLed(ctx, l)
	defer stop()
	answer, err := s.peers.ReadIndex(ctx, forward.Peer{ID: l.LeaderID, Address: l.LeaderAddress}, word)
	if err != nil && errors.Is(context.Cause(ctx), ErrNotLeader) {
		return 0, ErrNotLeader
	}
	if err == nil {
		s.contact.Prove()
	}
	if err == nil && answer.Round != 0 {
		s.seen.Store(&seenRound{term: word.Term, round: answer.Round})
	}
	return answer.Revision, err
}

// seenRound is a round of the reads of the leader of a term.
type seenRound struct{ term, round uint64 }

// word is of a moment after the call: the reads it asks for have begun by then, and
// those of the leader that it names.
func (s *Store) word() forward.Word {
	seen := s.seen.Load() // before the term is looked at
	return newWord(s.replica.ID(), s.replica.Term(), seen)
}

func newWord(id string, term uint64, seen *seenRound) forward.Word {
	if seen == nil || seen.term != term {
		return forward.Word{ID: id, Term: term}
	}
	return forward.Word{ID: id, Term: term, Seen: seen.round}
}
