package raftstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/forward"
	"github.com/setpoint-io/setpoint/raftstore/replica"
)

const (
	// roomEvery is how often a leader decides anew whether it takes writes.
	roomEvery = time.Second
	// peerRoomEvery is how often it asks the voters for their room, peerRoomAge how
	// long an answer counts: a server that died full does not hinder the others.
	peerRoomEvery = 2 * time.Second
	peerRoomAge   = 10 * time.Second
)

// SpaceStatus is the room on a server's disk.
type SpaceStatus = replica.SpaceStatus

// admit refuses, on the leader, what would fill a disk that has little room left.
// Errors wrap ErrNoSpace.
func (s *Store) admit(c *command.Command) error {
	if refusal := s.noRoom.Load(); refusal != nil && !essential(c) {
		return *refusal
	}
	return nil
}

// essential reports whether a command passes when there is little room: it makes
// room, or the system needs it.
func essential(c *command.Command) bool {
	if c.Essential {
		return true
	}
	for i := range c.Ops {
		if c.Ops[i].Kind == command.Put {
			return false
		}
	}
	return true
}

// followRoom keeps noRoom as it is on this server and, while it leads, on the other
// voters.
func (s *Store) followRoom() {
	tick := time.NewTicker(roomEvery)
	defer tick.Stop()
	peers := map[string]peerRoom{}
	var asked time.Time
	for {
		s.judgeRoom(peers)
		if s.Leadership().Leader && time.Since(asked) >= peerRoomEvery {
			asked = time.Now()
			s.askRoom(peers)
			s.judgeRoom(peers)
		}
		select {
		case <-s.replica.SpaceNews():
			asked = time.Time{}
		case <-tick.C:
		case <-s.ctx.Done():
			return
		}
	}
}

// peerRoom is what a voter said of its disk, and when.
type peerRoom struct {
	name  string
	space SpaceStatus
	at    time.Time
}

// askRoom asks all other voters at once.
func (s *Store) askRoom(peers map[string]peerRoom) {
	ctx, cancel := context.WithTimeout(s.ctx, peerRoomEvery)
	defer cancel()
	maps.Copy(peers, askEach(s.voters(), s.id(), func(server Server) (peerRoom, error) {
		status, err := s.peers.Status(ctx, forward.Peer(server))
		return peerRoom{status.Name, SpaceStatus(status.Space), time.Now()}, err
	}))
}

// judgeRoom decides whether writes are taken.
func (s *Store) judgeRoom(peers map[string]peerRoom) {
	if own := s.replica.Space(); own.Low {
		s.refuseWrites(s.cfg.Name, own)
		return
	}
	for id, peer := range peers {
		if time.Since(peer.at) > peerRoomAge {
			delete(peers, id)
		} else if peer.space.Low {
			s.refuseWrites(peer.name, peer.space)
			return
		}
	}
	s.noRoom.Store(nil)
}

func (s *Store) refuseWrites(server string, space SpaceStatus) {
	err := fmt.Errorf("%w: the disk of %s has %d MiB free and needs %d MiB: make room on it, or delete objects",
		ErrNoSpace, server, space.FreeBytes>>20, space.HeadroomBytes>>20)
	s.noRoom.Store(&err)
}

// refusedForGood reports whether asking again at once is of no use.
func refusedForGood(err error) bool {
	return errors.Is(err, ErrOverloaded) || errors.Is(err, ErrNoSpace)
}
