package raftstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/internal/aligned"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/forward"
	"github.com/setpoint-io/setpoint/raftstore/replica"
)

const (
	// roomEvery is how often a leader decides anew whether it takes writes.
	roomEvery = time.Second
	// peerRoomEvery is how often it asks the voters for their room, peerRoomAge how
	// long an answer counts.
	peerRoomEvery = 2 * time.Second
	peerRoomAge   = 10 * time.Second
)

// SpaceStatus is the room on a server's disk.
type SpaceStatus = replica.SpaceStatus

// admit refuses, on the leader, what would fill the disks of most voters, or the memory.
// Errors wrap ErrNoSpace.
func (s *Store) admit(c *command.Command) error {
	if refusal := s.noRoom.Load(); refusal != nil && !essential(c) {
		return *refusal
	}
	return s.admitObjects(c)
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

// followRoom keeps noRoom while this server leads, and gives the lead away when its own
// disk is the one with little room.
func (s *Store) followRoom() {
	leads := s.LeadershipChanges(s.ctx)
	peers := map[string]peerRoom{}
	var asked time.Time
	for s.ctx.Err() == nil {
		if !s.Leadership().Leader {
			s.noRoom.Store(nil)
			clear(peers)
			asked = time.Time{}
		} else if s.judgeRoom(peers); time.Since(asked) >= peerRoomEvery {
			asked = time.Now()
			s.askRoom(peers)
			s.judgeRoom(peers)
			s.leadElsewhere(peers)
		}
		select {
		case <-s.replica.SpaceNews():
			asked = time.Time{}
		case <-leads:
		case <-aligned.After(roomEvery):
		case <-s.ctx.Done():
		}
	}
}

// peerRoom is what a voter said of its disk and of its log, and when.
type peerRoom struct {
	name      string
	space     SpaceStatus
	lastIndex uint64
	at        time.Time
}

// askRoom asks all other voters at once, and forgets what is old.
func (s *Store) askRoom(peers map[string]peerRoom) {
	ctx, cancel := context.WithTimeout(s.ctx, peerRoomEvery)
	defer cancel()
	maps.Copy(peers, askEach(s.voters(), s.id(), func(server Server) (peerRoom, error) {
		status, err := s.peers.Status(ctx, forward.Peer(server))
		return peerRoom{status.Name, roomOf(status.Space), status.LastIndex, time.Now()}, err
	}))
	maps.DeleteFunc(peers, func(_ string, peer peerRoom) bool { return time.Since(peer.at) > peerRoomAge })
}

func roomOf(s forward.Space) SpaceStatus {
	return SpaceStatus{FreeBytes: s.FreeBytes, HeadroomBytes: s.HeadroomBytes, Low: s.Low}
}

// judgeRoom decides whether writes are taken: while most voters have room, this one
// counted, since a write is acknowledged when it is on the disks of most. Once one is known to
// have little, a voter that is silent is none of those that have room: the write would
// need the disk that has little.
func (s *Store) judgeRoom(peers map[string]peerRoom) {
	peers = maps.Clone(peers)
	peers[s.id()] = peerRoom{name: s.cfg.Name, space: s.replica.Space()}
	voters, roomy := s.voters(), 0
	var low []string
	for _, voter := range voters {
		peer, known := peers[voter.ID]
		switch {
		case known && peer.space.Low:
			low = append(low, fmt.Sprintf("the disk of %s has %d MiB free and needs %d MiB",
				peer.name, peer.space.FreeBytes>>20, peer.space.HeadroomBytes>>20))
		case known:
			roomy++
		}
	}
	if len(low) == 0 || roomy > len(voters)/2 {
		s.noRoom.Store(nil)
		return
	}
	slices.Sort(low)
	err := fmt.Errorf("%w: %s: make room there, or delete objects", ErrNoSpace, strings.Join(low, ", "))
	s.noRoom.Store(&err)
}

// leadElsewhere hands the lead to the voter with room whose log goes furthest, if this
// server has little: a follower whose disk is full hinders nobody, a leader all.
func (s *Store) leadElsewhere(peers map[string]peerRoom) {
	if !s.replica.Space().Low {
		return
	}
	var to peerRoom
	for _, peer := range peers {
		if !peer.space.Low && (to.name == "" || peer.lastIndex > to.lastIndex) {
			to = peer
		}
	}
	if to.name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, transferLimit)
	defer cancel()
	s.cfg.Logger.Warn("the disk of the leader is nearly full: another leads", "to", to.name)
	if err := s.change(ctx, forward.Change{Kind: forward.Transfer, Name: to.name}); err != nil {
		s.cfg.Logger.Warn("the lead was not given away", "to", to.name, "err", err)
	}
}

// refusedForGood reports whether asking again at once is of no use.
func refusedForGood(err error) bool {
	return errors.Is(err, ErrOverloaded) || errors.Is(err, ErrNoSpace)
}
