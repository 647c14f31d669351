package raftstore

import (
	"context"
	"sync"

	"github.com/setpoint-io/setpoint/raftstore/state"
)

// sequenceSpread is how far a new sequence may run ahead of the oldest without an
// outcome. The log remembers state.SessionWindow results; a retry must find its
// own there.
const sequenceSpread = state.SessionWindow / 2

// sessionKeeper gives out sequences of one session and opens the session, and
// later ones, when needed.
type sessionKeeper struct {
	open func(context.Context) (id uint64, err error)

	mu      sync.Mutex
	current *session
	// opening is closed when the one who opens a session is done.
	opening chan struct{}
}

// session is one opened in the log. Its fields are guarded by the keeper's mutex.
type session struct {
	id uint64
	// next is the sequence to give out, oldest the first without an outcome.
	next, oldest uint64
	// finished holds sequences after oldest that have an outcome.
	finished map[uint64]struct{}
	// advanced is closed when oldest moves, if somebody waits.
	advanced chan struct{}
}

// ticket is the right to use one sequence. finish it when its outcome is known,
// or nobody will ask again.
type ticket struct {
	keeper   *sessionKeeper
	session  *session
	sequence uint64
}

// take returns the next sequence, waiting while the oldest is too far behind.
func (k *sessionKeeper) take(ctx context.Context) (ticket, error) {
	for {
		t, wait := k.tryTake()
		if t.session != nil {
			return t, nil
		}
		if wait == nil {
			if err := k.openOne(ctx); err != nil {
				return ticket{}, err
			}
			continue
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ticket{}, ctx.Err()
		}
	}
}

// tryTake returns a ticket, or what to wait for, or neither: then the caller is
// the one to open a session.
func (k *sessionKeeper) tryTake() (ticket, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.current
	switch {
	case s == nil && k.opening != nil:
		return ticket{}, k.opening
	case s == nil:
		k.opening = make(chan struct{})
		return ticket{}, nil
	case s.next-s.oldest >= sequenceSpread:
		if s.advanced == nil {
			s.advanced = make(chan struct{})
		}
		return ticket{}, s.advanced
	}
	s.next++
	return ticket{keeper: k, session: s, sequence: s.next - 1}, nil
}

// openOne opens a session; the caller was chosen by tryTake.
func (k *sessionKeeper) openOne(ctx context.Context) error {
	id, err := k.open(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.current = &session{id: id, next: 1, oldest: 1, finished: map[uint64]struct{}{}}
	}
	close(k.opening)
	k.opening = nil
	return err
}

// drop makes the next take open a new session, unless that was done already.
func (k *sessionKeeper) drop(s *session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current == s {
		k.current = nil
	}
	if s.advanced != nil {
		close(s.advanced)
		s.advanced = nil
	}
}

// finish gives the sequence back.
func (t ticket) finish() {
	t.keeper.mu.Lock()
	defer t.keeper.mu.Unlock()
	s := t.session
	s.finished[t.sequence] = struct{}{}
	before := s.oldest
	for {
		if _, ok := s.finished[s.oldest]; !ok {
			break
		}
		delete(s.finished, s.oldest)
		s.oldest++
	}
	if s.oldest != before && s.advanced != nil {
		close(s.advanced)
		s.advanced = nil
	}
}
