package raftstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/forward"
	"github.com/setpoint-io/setpoint/raftstore/founded"
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
	// waitingTellInterval is how often a server that can go no further says so.
	waitingTellInterval = 30 * time.Second
)

// decide brings a founder without data, or a server with damaged data, into the
// cluster that its peers have, or founds one with them. It reports whether the
// replica takes part now.
func (s *Store) decide() bool {
	start := time.Now()
	var told time.Time
	for {
		b := s.replica.Beginning()
		if !b.Undecided() {
			return true
		}
		v := judge(b, s.cfg, s.book, s.askPeers(), time.Since(start))
		if v.act == wait {
			if time.Since(start) > foundingGrace && time.Since(told) >= waitingTellInterval {
				told = time.Now()
				s.tellWaiting(b, v)
			}
			if !s.pause(start) {
				return false
			}
			continue
		}
		if err := s.enter(v); err != nil {
			s.cfg.Fatal(err)
			return false
		}
		if b = s.replica.Beginning(); b.Undecided() {
			s.cfg.Logger.Info("others have founded the cluster at the same moment, as the record in the trust folder says: asking them")
			if !s.pause(start) {
				return false
			}
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

// tellWaiting says what this server waits for, and what to do if that will not come.
func (s *Store) tellWaiting(b replica.Beginning, v verdict) {
	if v.because == "" {
		s.cfg.Logger.Info("waiting for the other servers, to learn whether there is a cluster", "phase", b.Phase)
		return
	}
	s.cfg.Logger.Warn(v.because, "phase", b.Phase, "servers", v.servers)
}

func (s *Store) enter(v verdict) error {
	if v.act == found {
		s.cfg.Logger.Info("founding the cluster", "founders", len(v.founders))
		return s.replica.Found(v.founders, v.life)
	}
	err := s.replica.Rejoin(s.ctx)
	s.cfg.Logger.Info("the others have a cluster: joining it under a new id", "id", s.id())
	return err
}

// askPeers asks all other servers that are known how they are; those that do not answer within
// askLimit, at any address that is known, are missing.
func (s *Store) askPeers() map[string]forward.Status {
	places := s.known()
	var servers []Server
	for _, name := range places.Names() {
		servers = append(servers, Server{ID: name})
	}
	return askEach(servers, s.cfg.Name, func(server Server) (status forward.Status, err error) {
		for _, address := range places.Of(server.ID) {
			if status, err = s.askName(Server{ID: server.ID, Address: address}); err == nil {
				break
			}
		}
		return status, err
	})
}

func (s *Store) askName(server Server) (forward.Status, error) {
	ctx, cancel := context.WithTimeout(s.ctx, askLimit)
	defer cancel()
	status, err := s.peers.Status(ctx, forward.Peer(server))
	if err == nil && status.Name != server.ID {
		err = fmt.Errorf("%s answers for %s", status.Name, server.ID)
	}
	return status, err
}

// act is what a server that takes no part yet does.
type act int

const (
	wait act = iota
	found
	rejoin
)

// verdict is an act; for found the founders that were counted and, if they begin with
// the data of one of them, its life; for wait what hinders, and whose doing it is.
type verdict struct {
	act      act
	founders map[string]string
	life     string
	because  string
	servers  []string
}

// What may hinder.
const (
	becauseLeaderless = "other servers have the cluster's data but no majority to elect a leader: start those that are down; " +
		"if they are lost for good, run 'setpoint cluster recover' on the server that has the most"
	becauseOtherData = "a backup was restored here, but other servers have data of another life: stop them, and restore the same file there " +
		"with the same list of servers; or empty this server's data directory, to let it join them"
	becauseNoData = "a backup was restored here and begins with the first server of the list that was given: " +
		"restore the same file there with the same list, and start it"
	becauseRestored = "a backup was restored on other servers: waiting until they begin with it"
)

// answers are what the peers said, sorted.
type answers struct {
	// fresh are the nonces of those who may found the cluster with this server.
	fresh map[string]string
	// held have data; led: one of them knows a leader. restored wait to begin with
	// a backup, and not with this server.
	held, restored []string
	led            bool
}

func sortAnswers(b replica.Beginning, peers map[string]forward.Status) answers {
	a := answers{fresh: map[string]string{}}
	for name, status := range peers {
		switch replica.Phase(status.Phase) {
		case replica.Fresh:
			a.fresh[name] = status.Nonce
		case replica.Restored:
			if hasBackup(b) && status.Life == "" && status.Backup == b.Backup {
				a.fresh[name] = status.Nonce
			} else {
				a.restored = append(a.restored, name)
			}
		case replica.Held:
			a.held, a.led = append(a.held, name), a.led || status.Leader != ""
		}
	}
	slices.Sort(a.held)
	slices.Sort(a.restored)
	return a
}

// hasBackup reports whether this server is the one that has the data of a restored
// backup.
func hasBackup(b replica.Beginning) bool { return b.Phase == replica.Restored && b.Life != "" }

// judge decides on what the peers answered.
//
// Founders without data must not vote if they may have voted before and lost it.
// Each has a nonce, as old as its data directory. A majority of them, all without
// data, may found the cluster and remember whose nonces they counted: those
// directories have not voted since, so their servers may found it too. Any other
// server comes back under a new id, once there is a leader who can admit it. If
// the founders found it apart from each other nothing is lost: their first log
// entries are the same.
//
// A restored backup is founded so too, but one server alone counts the others: the one
// that has the data. The others begin with its life and without data.
func judge(b replica.Beginning, cfg Config, book *founded.Book, peers map[string]forward.Status, waited time.Duration) verdict {
	if v, counted := countedIn(b, cfg, peers); counted && (v.life != "" || book.MayFound(cfg.Name, b.Nonce) == nil) {
		return v
	}
	a := sortAnswers(b, peers)
	switch {
	case hasBackup(b) && len(a.held)+len(a.restored) > 0:
		return verdict{act: wait, because: becauseOtherData, servers: append(a.held, a.restored...)}
	case a.led:
		return verdict{act: rejoin}
	case len(a.held) > 0:
		return verdict{act: wait, because: becauseLeaderless, servers: a.held}
	case b.Phase == replica.Restored && !hasBackup(b):
		return verdict{act: wait, because: becauseNoData}
	case b.Phase == replica.Damaged:
		return verdict{act: wait}
	case len(a.restored) > 0:
		return verdict{act: wait, because: becauseRestored, servers: a.restored}
	}
	return foundWith(b, cfg, book, a.fresh, waited)
}

// foundWith founds the cluster with those who may, if they are enough.
func foundWith(b replica.Beginning, cfg Config, book *founded.Book, fresh map[string]string, waited time.Duration) verdict {
	fresh[cfg.Name] = b.Nonce
	if !hasBackup(b) { // a restored one is a new life, whatever there was before
		var err error
		if fresh, err = book.Among(cfg.Name, b.Nonce, fresh); err != nil {
			return verdict{act: wait, because: err.Error()}
		}
	}
	maps.DeleteFunc(fresh, func(name, _ string) bool {
		return !slices.ContainsFunc(cfg.InitialServers, func(s Server) bool { return s.ID == name })
	})
	all, majority := len(cfg.InitialServers), len(cfg.InitialServers)/2+1
	if len(fresh) == all || len(fresh) >= majority && waited >= foundingGrace {
		return verdict{act: found, founders: fresh, life: b.Life}
	}
	return verdict{act: wait}
}

// countedIn finds a founder that has counted this server, as it is.
func countedIn(b replica.Beginning, cfg Config, peers map[string]forward.Status) (verdict, bool) {
	if b.Nonce == "" || b.Phase == replica.Damaged || hasBackup(b) {
		return verdict{}, false
	}
	for _, status := range peers {
		if status.Founders[cfg.Name] == b.Nonce {
			return verdict{act: found, founders: status.Founders, life: status.Life}, true
		}
	}
	return verdict{}, false
}
