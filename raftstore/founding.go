package raftstore

import (
	"context"
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/forward"
	"github.com/setpoint-io/setpoint/raftstore/replica"
)

const (
	// foundingGrace is how long founders wait for all of them before a majority
	// founds the cluster; who comes later joins it under a new id.
	foundingGrace = 2 * time.Second
	// askPause is the time between two rounds of asking the peers.
	askPause = 50 * time.Millisecond
	// waitingPause is the same once nothing has happened for foundingGrace.
	waitingPause = 500 * time.Millisecond
)

// decide brings a founder without data, or a server with damaged data, into the
// cluster that its peers have, or founds one with them. It reports whether the
// replica takes part now.
func (s *Store) decide() bool {
	start := time.Now()
	for told := false; ; told = true {
		b := s.replica.Beginning()
		if b.Phase != replica.Fresh && b.Phase != replica.Damaged {
			return true
		}
		v := judge(b, s.cfg, s.askPeers(), time.Since(start))
		if v.act == wait {
			s.tellWaiting(told, b)
			if !s.pause(start) {
				return false
			}
			continue
		}
		if err := s.enter(v); err != nil {
			s.cfg.Fatal(err)
			return false
		}
	}
}

// pause waits for the next round, and reports whether there is to be one.
func (s *Store) pause(start time.Time) bool {
	next := askPause
	if time.Since(start) > foundingGrace {
		next = waitingPause
	}
	return s.sleep(next)
}

// sleep reports whether it slept to the end.
func (s *Store) sleep(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-s.stopping:
		return false
	}
}

func (s *Store) tellWaiting(told bool, b replica.Beginning) {
	if !told {
		s.cfg.Logger.Info("asking the other servers whether there is a cluster", "phase", b.Phase)
	}
}

func (s *Store) enter(v verdict) error {
	if v.act == found {
		s.cfg.Logger.Info("founding the cluster", "founders", len(v.founders))
		return s.replica.Found(v.founders)
	}
	err := s.replica.Rejoin(s.ctx)
	s.cfg.Logger.Info("the others have a cluster: joining it under a new id", "id", s.id())
	return err
}

// askPeers asks all other founders how they are; those that do not answer within
// askLimit are missing.
func (s *Store) askPeers() map[string]forward.Status {
	ctx, cancel := context.WithTimeout(s.ctx, askLimit)
	defer cancel()
	return askEach(s.cfg.InitialServers, s.cfg.Name, func(server Server) (forward.Status, error) {
		status, err := s.peers.Status(ctx, forward.Peer(server))
		if err == nil && status.Name != server.ID {
			err = fmt.Errorf("%s answers for %s", status.Name, server.ID)
		}
		return status, err
	})
}

// act is what a server that takes no part yet does.
type act int

const (
	wait act = iota
	found
	rejoin
)

// verdict is an act, and for found the founders that were counted.
type verdict struct {
	act      act
	founders map[string]string
}

// judge decides on what the peers answered.
//
// Founders without data must not vote if they may have voted before and lost it.
// Each has a nonce, as old as its data directory. A majority of them, all without
// data, may found the cluster and remember whose nonces they counted: those
// directories have not voted since, so their servers may found it too. Any other
// server comes back under a new id, once there is a leader who can admit it. If
// the founders found it apart from each other nothing is lost: their first log
// entries are the same.
func judge(b replica.Beginning, cfg Config, answers map[string]forward.Status, waited time.Duration) verdict {
	fresh, led, held := map[string]string{}, false, false
	for name, status := range answers {
		switch {
		case b.Nonce != "" && status.Founders[cfg.Name] == b.Nonce && b.Phase == replica.Fresh:
			return verdict{found, status.Founders}
		case status.Phase == string(replica.Fresh):
			fresh[name] = status.Nonce
		case status.Phase == string(replica.Held):
			held, led = true, led || status.Leader != ""
		}
	}
	switch {
	case led:
		return verdict{act: rejoin}
	case held || b.Phase != replica.Fresh:
		return verdict{act: wait}
	}
	fresh[cfg.Name] = b.Nonce
	all, majority := len(cfg.InitialServers), len(cfg.InitialServers)/2+1
	if len(fresh) == all || len(fresh) >= majority && waited >= foundingGrace {
		return verdict{found, fresh}
	}
	return verdict{act: wait}
}
