package raftstore

import (
	"context"
	"net/http"
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
// and when its address has changed.
func (s *Store) rejoin() {
	if !s.decide() {
		return
	}
	var told time.Time
	for {
		pause := attendInterval
		if !s.settled() {
			pause = admitPause
			if err := s.askAdmission(); err != nil && time.Since(told) > admitTellInterval {
				told = time.Now()
				s.cfg.Logger.Info("waiting to be a member", "id", s.id(), "address", s.cfg.AdvertiseAddress, "reason", err)
			}
		}
		if !s.sleep(pause) {
			return
		}
	}
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
	for _, status := range s.askPeers() {
		if status.Leader != "" {
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
