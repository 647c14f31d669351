package raftstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/forward"
)

const (
	// compareEvery is how many revisions lie between two comparisons of the replicas'
	// states.
	compareEvery = 4096
	// comparePause is the least time between two that members ask for.
	comparePause = time.Second
	// verdictLimit is how long a replica that differs from another waits for the word of
	// most voters, verdictPause the time between two rounds of asking, claimLimit the
	// longest that one may take.
	verdictLimit = 10 * time.Second
	verdictPause = 250 * time.Millisecond
	claimLimit   = time.Second
)

// compareStates, on the leader, puts the hash of its state into the log from time to time.
// Each replica notes what its own state was at that entry; one that finds another hash, or
// hears of another, asks all members. Whoever differs from most voters stops, the leader
// too.
func (s *Store) compareStates() {
	next := uint64(compareEvery)
	for {
		root, err := s.replica.State().WaitRevision(s.ctx, next)
		if err != nil {
			return
		}
		next = root.Revision + compareEvery
		s.proposeHash()
	}
}

// compareAnew has the states compared when this replica finds a leader: when it starts, and
// when another takes the lead. A server that has another past than the rest should not
// serve for long, nor lead. On the leader it does what the followers ask for.
func (s *Store) compareAnew() {
	var asked Leadership
	wanted := false
	for {
		l, changed := s.replica.Leadership()
		if l.Leader && wanted {
			wanted = false
			s.proposeHash()
			s.sleep(comparePause)
		}
		if l.Ready && !l.Leader && l != asked && s.askComparison(l) {
			asked = l
		}
		select {
		case <-changed:
		case <-s.compareAsked:
			wanted = true // a leader that was just elected may not lead yet
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *Store) proposeHash() {
	revision, hash := s.replica.State().Hash()
	if revision == 0 || !s.Leadership().Leader {
		return
	}
	s.proposeSystem(command.Op{Kind: command.StateHash, Revision: revision, Value: hash[:]})
}

// askComparison asks the leader for a comparison, and reports whether it heard.
func (s *Store) askComparison(l Leadership) bool {
	ctx, cancel := context.WithTimeout(s.ctx, claimLimit)
	defer cancel()
	_, err := s.peers.CompareState(ctx, forward.Peer{ID: l.LeaderID, Address: l.LeaderAddress}, forward.Claim{Member: s.id()})
	return err == nil || errors.Is(err, forward.ErrNoClaim)
}

// hearClaim is this replica's answer to another's claim.
func (s *Store) hearClaim(claim forward.Claim) (own stateHash, known bool) {
	if claim.Index != 0 {
		return s.claims.heard(claim.Index, claim.Member, claim.Hash)
	}
	select {
	case s.compareAsked <- struct{}{}:
	default: // one is due already
	}
	return own, false
}

// followDoubts finds out who differs.
func (s *Store) followDoubts() {
	for {
		select {
		case index := <-s.claims.doubts:
			s.settle(index)
		case <-s.ctx.Done():
			return
		}
	}
}

// settle asks the members until most voters have one state, or it is clear that none has.
func (s *Store) settle(index uint64) {
	for start := time.Now(); ; {
		entry, verdict, state := s.judge(index)
		switch {
		case verdict == agreed || s.replica.Failed() != nil:
			return
		case verdict == outvoted:
			s.replica.Stop(fmt.Errorf("%w: at revision %d hash %x, most voters have %x", ErrDiverged, entry.revision, entry.own, state))
			return
		case verdict == split || time.Since(start) > verdictLimit:
			s.giveWay(entry)
			return
		}
		if !s.sleep(verdictPause) {
			return
		}
	}
}

// judge returns what the voters' claims say, and asks for them where that is not clear yet.
// What is forgotten counts as agreed: there is a newer comparison.
func (s *Store) judge(index uint64) (entry compared, verdict opinion, state stateHash) {
	for _, ask := range []bool{true, false} {
		var known bool
		if entry, known = s.claims.get(index); !known {
			return entry, agreed, state
		}
		verdict, state = entry.judge(s.id(), serverIDs(s.voters()))
		if verdict != undecided || !ask {
			break
		}
		s.askClaims(entry)
	}
	return entry, verdict, state
}

// askClaims tells all members what this replica found, and notes what they did.
func (s *Store) askClaims(entry compared) {
	ctx, cancel := context.WithTimeout(s.ctx, claimLimit)
	defer cancel()
	var members []Server
	for _, server := range s.replica.Status().Servers {
		members = append(members, server.Server)
	}
	found := askEach(members, s.id(), func(member Server) (stateHash, error) {
		return s.peers.CompareState(ctx, forward.Peer(member), forward.Claim{Member: s.id(), Index: entry.index, Hash: entry.own})
	})
	for member, hash := range found {
		s.claims.heard(entry.index, member, hash)
	}
}

// giveWay is for two states of which none has most voters: two voters that differ, or a
// third that is away. Nobody can say which is right. Then the server that differs from the
// present leader stops, so that a quorum, if one is left, has one state; what clients
// were told last came from it. Its data stays and counts as good: the next start compares
// again, and with the word of a third the leader may be the one that has to go.
func (s *Store) giveWay(entry compared) {
	l := s.Leadership()
	leaders, known := entry.others[l.LeaderID]
	if !l.Leader && known && leaders != entry.own {
		s.replica.Stop(
			fmt.Errorf(
				"%w: at revision %d hash %x, the leader has %x; start the other servers, or compare their data, before this one leads",
				ErrUndecided,
				entry.revision,
				entry.own,
				leaders,
			),
		)
		return
	}
	s.cfg.Logger.Error(
		"the servers' states differ, and no majority says which is right",
		"revision",
		entry.revision,
		"here",
		fmt.Sprintf("%x", entry.own),
	)
}

func serverIDs(servers []Server) (ids []string) {
	for _, server := range servers {
		ids = append(ids, server.ID)
	}
	return ids
}
