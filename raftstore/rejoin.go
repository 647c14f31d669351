package raftstore

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/forward"
)

const (
	// attendInterval is how often a member looks whether its place is as it should be.
	attendInterval = 5 * time.Second
	// admitPause is the time between two tries to be admitted, admitLimit the longest
	// one may take.
	admitPause = 250 * time.Millisecond
	admitLimit = 5 * time.Minute
	// admitTellInterval is how often a server that waits says so.
	admitTellInterval = 30 * time.Second
)

// rejoin brings this replica into the cluster and keeps its place there: it asks
// the leader for it when it is new or back under a new id, when it has no vote yet,
// when its address has changed, and when it hears of no leader, who may have removed it.
func (s *Store) rejoin() {
	if !s.decide() {
		return
	}
	var told time.Time
	for voter := false; ; {
		settled := s.settled()
		voter = voter || s.votes()
		pause := attendInterval
		switch {
		case settled && s.Leadership().Ready:
			s.keepPresent()
		case s.removed(voter, settled, &told):
			return
		case !settled:
			pause = admitPause
		}
		if !s.sleep(pause) {
			return
		}
	}
}

// removed asks the leader for this server's place, and stops the server if it was a voter and has none any more. A newcomer
// whose place was not yet committed waits. Now and then it is said why a server waits that is not settled.
func (s *Store) removed(voter, settled bool, told *time.Time) bool {
	if s.cfg.New && !voter {
		return false
	}
	err := s.askAdmission()
	if voter && errors.Is(err, ErrUnknownServer) {
		s.replica.Stop(RemovedError(s.cfg.Name, s.cfg.AdvertiseAddress))
		return true
	}
	if err != nil && !settled && time.Since(*told) > admitTellInterval {
		*told = time.Now()
		s.cfg.Logger.Info("waiting to be a member", "id", s.id(), "address", s.cfg.AdvertiseAddress, "reason", err)
	}
	return false
}

// settled reports whether this server is a voter at its present address.
func (s *Store) settled() bool {
	id := s.id()
	for _, server := range s.replica.Status().Servers {
		if server.ID == id {
			return server.Voter && server.Address == s.cfg.AdvertiseAddress
		}
	}
	return false
}

// votes reports whether this server has had a place: as a voter, or in the record as a member. Who bears its name as its id has founded
// the cluster.
func (s *Store) votes() bool {
	id := s.id()
	return id == s.cfg.Name || s.isVoter() || slices.Contains(s.book.IDs(), id)
}

func (s *Store) askAdmission() error {
	ctx, cancel := context.WithTimeout(s.ctx, admitLimit)
	defer cancel()
	l, _ := s.replica.Leadership()
	if !l.Ready {
		l = s.leaderByPeers()
	}
	return s.toLeader(ctx, l, forward.Change{
		Kind: forward.Admit, Name: s.cfg.Name, ID: s.id(), Address: s.cfg.AdvertiseAddress,
	})
}

// leaderByPeers finds the leader that this replica has not heard of itself.
func (s *Store) leaderByPeers() Leadership {
	own := s.replica.Beginning().Life
	for _, status := range s.askPeers() {
		if ofOneLife := own == "" || status.Life == "" || status.Life == own; status.Leader != "" && ofOneLife {
			return Leadership{LeaderID: status.Leader, LeaderAddress: status.LeaderAddress, Ready: true}
		}
	}
	return Leadership{}
}

// peerClient is HTTPClient for members: certificates bear names.
func (c *Config) peerClient() func(id, address string) (*http.Client, string) {
	if c.HTTPClient == nil {
		return nil
	}
	return func(id, address string) (*http.Client, string) { return c.HTTPClient(MemberName(id), address) }
}
