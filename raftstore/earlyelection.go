package raftstore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/forward"
)

const (
	// knocks is how often a leader that hung up is called again before it is left to
	// raft's timers: a process that is ending still takes connections for a moment.
	knocks = 5
	// knockPause is the time between two calls, knockLimit the longest that one may take.
	knockPause = 20 * time.Millisecond
	knockLimit = 200 * time.Millisecond
	// earlyElectionStep is the head start that each voter gives those named before it, so
	// that one of them gathers the others' word.
	earlyElectionStep = 100 * time.Millisecond
	// wordLimit bounds asking the other voters; who is late is counted out.
	wordLimit = 250 * time.Millisecond
)

// electEarly has a leader whose process was killed replaced at once.
//
// Raft waits until its followers have not heard of the leader for a while, which they
// must: a silent leader may only be slow. But the kernel of a killed process closes its
// connections and refuses new ones, and that is word enough. If most voters have it,
// the one with the longest log stands for election. A machine that lost its power, or a
// cut network, refuses nothing: there the timers decide, as ever. Whoever is wrong, the
// election is raft's own: it costs an election, not consistency.
func (s *Store) electEarly() {
	var over Leadership // two candidates of one term would split the votes
	for {
		select {
		case <-s.hungUp:
			if l := s.Leadership(); l != over && s.succeed(l) {
				over = l
			}
		case <-s.stopping:
			return
		case <-s.ctx.Done():
			return
		}
	}
}

// peerHungUp is told of each connection of raft that ended. Calls of leaderGone are none:
// two servers that take each other for the leader would call for ever.
func (s *Store) peerHungUp() {
	select {
	case s.hungUp <- struct{}{}:
	default: // a look at the leader is due already
	}
}

// succeed has the leader replaced if most voters find it gone, and reports whether it did.
func (s *Store) succeed(l Leadership) bool {
	if !l.Ready || l.Leader || !s.leaderGone(s.ctx, l.LeaderID) {
		return false
	}
	heirs := s.heirs(l.LeaderID)
	if !s.awaitTurn(heirs) || s.Leadership() != l {
		return false
	}
	heir, agreed := s.chooseHeir(l, heirs)
	if !agreed || s.Leadership() != l || s.replica.Term() != l.Term {
		return false
	}
	s.cfg.Logger.Info("the leader's process has ended: electing another", "leader", l.LeaderID, "term", l.Term, "candidate", heir)
	if err := s.replica.Stand(heir); err != nil {
		s.cfg.Logger.Warn("no early election", "candidate", heir, "err", err)
	}
	return true
}

// followLoss has this replica stand for election at once when it stops leading although
// nobody followed it.
//
// A leader steps down when it has not heard from most voters for Timing.LeaderLease; mostly
// it had no processor for a while. Its followers do not know that, and would wait until
// they miss it themselves, and then for an election. The log here is as long as theirs,
// so it asks for their votes in the next term, as one that the leadership was handed to:
// whoever believes in a leader believes in this one. If it is cut off, nobody hears, and the
// timers decide. Raft's leader also steps down when a peer answers out of a later term, and
// keeps its own until the one who stands there calls: that one is not stood against.
func (s *Store) followLoss() {
	var led Leadership
	for {
		l, changed := s.replica.Leadership()
		if led.Leader && !l.Leader && l.LeaderID == "" && l.Term == led.Term && !s.replica.Succeeded(l.Term) && s.check() == nil {
			s.standAgain(l)
		}
		led = l
		select {
		case <-changed:
		case <-s.stopping:
			return
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *Store) standAgain(l Leadership) {
	s.stepDowns.Add(1)
	isVoter := s.isVoter()
	s.cfg.Logger.Warn("stopped leading: most servers did not answer in time", "term", l.Term, "stands again", isVoter)
	if !isVoter { // it has left the cluster
		return
	}
	if err := s.replica.Stand(s.id()); err != nil {
		s.cfg.Logger.Warn("no early election", "candidate", s.id(), "err", err)
	}
}

// awaitTurn lets those before this voter try, and reports whether it is one.
func (s *Store) awaitTurn(heirs []Server) bool {
	rank := slices.IndexFunc(heirs, func(v Server) bool { return v.ID == s.id() })
	return rank == 0 || rank > 0 && s.sleep(time.Duration(rank)*earlyElectionStep)
}

// heirs are the voters beside the leader, in the order of their ids.
func (s *Store) heirs(leader string) []Server {
	heirs := slices.DeleteFunc(s.voters(), func(v Server) bool { return v.ID == leader })
	slices.SortFunc(heirs, func(a, b Server) int { return strings.Compare(a.ID, b.ID) })
	return heirs
}

// leaderGone calls the leader until it answers, refuses, or was called enough.
func (s *Store) leaderGone(ctx context.Context, id string) bool {
	for range knocks {
		ctx, cancel := context.WithTimeout(ctx, knockLimit)
		gone, err := s.replica.Gone(ctx, id)
		cancel()
		if err == nil || !s.sleep(knockPause) {
			return gone
		}
	}
	return false
}

// chooseHeir asks the others, and returns the voter whose log goes furthest if most
// voters, of whom the leader is one, find the leader gone.
func (s *Store) chooseHeir(l Leadership, heirs []Server) (heir string, agreed bool) {
	found := s.askHeirs(l, heirs)
	agree := 0
	for _, voter := range heirs {
		v, answered := found[voter.ID]
		if !answered || !v.Gone {
			continue
		}
		agree++
		if heir == "" || v.CompareLogs(found[heir]) > 0 {
			heir = voter.ID
		}
	}
	return heir, agree > (len(heirs)+1)/2
}

// askHeirs collects the word of each, that of this replica too.
func (s *Store) askHeirs(l Leadership, heirs []Server) map[string]forward.Vacancy {
	ctx, cancel := context.WithTimeout(s.ctx, wordLimit)
	defer cancel()
	found := askEach(heirs, s.id(), func(voter Server) (forward.Vacancy, error) {
		return s.peers.LeaderGone(ctx, forward.Peer(voter), forward.Led{Leader: l.LeaderID, Term: l.Term})
	})
	found[s.id()] = s.vacancy(true)
	return found
}

// judgeLeader is this replica's word for another that finds the leader gone. Raft's own term counts: Leadership is
// told of leaders alone, and one that handed over and ended has an heir that stands already, in the next term. Another
// candidate would split its votes, and both would wait out an election timeout.
func (s *Store) judgeLeader(ctx context.Context, led forward.Led) forward.Vacancy {
	l := s.Leadership()
	follows := l.LeaderID == led.Leader || l.LeaderID == ""
	gone := follows && l.Term == led.Term && s.leaderGone(ctx, led.Leader)
	return s.vacancy(gone && s.replica.Term() == led.Term)
}

func (s *Store) vacancy(gone bool) forward.Vacancy {
	v := forward.Vacancy{Gone: gone}
	v.LastTerm, v.LastIndex = s.replica.LastEntry()
	return v
}
