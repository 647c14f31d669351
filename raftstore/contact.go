package raftstore

import (
	"context"
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/internal/aligned"
)

const (
	// contactInterval is how often it is looked whether a read was proved in the last half of it; if not, one is.
	contactInterval = time.Second
	// searchInterval is how often the verdict is looked at while no leader is known.
	searchInterval = 250 * time.Millisecond
	// electionWait is how long after the loss of its leader a server lets requests wait, whenever they came: together with
	// contact.LostAfter the five seconds and two elections of etcd. A write that was sent already has no better place to learn its
	// outcome.
	electionWait = 4 * time.Second
	// lostWait is how long a request waits at least: at a server that has been without a leader for longer, the leader may be back at any
	// moment, and who is refused asks again after as long.
	lostWait = time.Second
)

// Led is a context that ends when this server is without a leader; while it is, one that has ended: reads and writes
// soon fail then, and whoever follows changes here is not told of any. Its cause is ErrNoLeader.
func (s *Store) Led() context.Context { return s.contact.Led() }

// Leaderless is why this server cannot serve, or nil. It wraps ErrNoLeader.
func (s *Store) Leaderless() error {
	if !s.contact.Lost() {
		return nil
	}
	return errLeaderless
}

// errLeaderless is what a server without a leader answers.
var errLeaderless = fmt.Errorf("%w: ask another server, or start more of them if no majority runs", ErrNoLeader)

// patience says until when a request may wait that has found no leader: for electionWait from when this server is without one, each time
// that it is, and for lostWait at least. The function it returns must be called.
func (s *Store) patience() (over <-chan struct{}, done func()) {
	ctx, cancel := context.WithCancel(s.ctx)
	go func() {
		for s.ledUntil(ctx) {
		}
		cancel()
	}()
	return ctx.Done(), cancel
}

// ledUntil waits until this server has lost its leader, and then for an election; it reports whether there was a leader meanwhile. It ends
// with the context, too.
func (s *Store) ledUntil(ctx context.Context) bool {
	select {
	case <-s.Led().Done():
	case <-ctx.Done():
		return false
	}
	select {
	case <-time.After(max(lostWait, electionWait-s.contact.LostFor())):
		return s.contact.LostFor() < electionWait
	case <-ctx.Done():
		return false
	}
}

// followContact keeps the contact until the store ends: it proves a read when there was none for a while, and judges
// whenever the leadership changes or may have been lost for too long.
func (s *Store) followContact() {
	for {
		l, changed := s.replica.Leadership()
		if s.contact.Age() >= contactInterval/2 && s.proves(l) {
			s.contact.Prove()
		}
		l, _ = s.replica.Leadership()
		if s.contact.Judge(l.Ready) {
			s.cfg.Logger.Warn("without a leader: clients are sent to other servers", "term", l.Term, "known", l.LeaderID)
		}
		pause := contactInterval
		if !l.Ready {
			pause = searchInterval
		}
		select {
		case <-aligned.After(pause):
		case <-changed:
		case <-s.stopping:
			return
		case <-s.ctx.Done():
			return
		}
	}
}

// proves reports whether a read can be proved now. A leader has its followers' answers to heartbeats, which
// come all the time; a follower asks, for no longer than forwardLimit or until the leader is another.
func (s *Store) proves(l Leadership) bool {
	switch {
	case l.Leader:
		return s.replica.QuorumSince(l.Term, time.Now().Add(-contactInterval))
	case l.Ready:
		_, err := s.ask.get(s.ctx)
		return err == nil
	}
	return false
}
