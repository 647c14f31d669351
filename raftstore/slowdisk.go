package raftstore

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/forward"
)

const (
	// quickMax is the longest that the last writes to disk of a server may have taken that counts as quick: a quarter
	// of what makes a leader give way, so that two servers with middling disks do not pass the lead to and fro.
	quickMax = 250 * time.Millisecond
	// stepAsidePause is the least time between two tries of this server to have another lead.
	stepAsidePause = 5 * time.Second
)

// followDisk has another server lead while the disk of this one holds everybody up: of a follower's disk nobody waits.
func (s *Store) followDisk() {
	for {
		select {
		case <-s.replica.DiskSlow():
		case <-s.stopping:
			return
		case <-s.ctx.Done():
			return
		}
		// The write of which was told may have ended meanwhile; another that has only begun is told of when it is slow.
		if s.stepAside() && !s.sleep(stepAsidePause) {
			return
		}
	}
}

// stepAside reports whether this server leads with a slow disk. It has the quick voter with the longest log lead, if the quick ones
// are a majority without this server. If they are not, every commit waits for a slow disk whoever leads, and this server stays.
//
// Raft hands leadership over on the goroutine that writes to the disk, and so only after the write. Before that, the
// other is told to stand for election, as raft's own message tells it, and the third votes for it although it
// hears this leader, whose heartbeats need no disk. What is being written here was sent to nobody yet, so their logs
// are complete. When the write ends, this server finds the later term and follows.
func (s *Store) stepAside() (slow bool) {
	term := s.replica.Term()
	waits, slow := s.replica.DiskWaits()
	if !s.replica.Leads(term) || !slow {
		return false
	}
	voters := s.voters()
	quick := s.quickVoters(voters)
	if len(quick) <= len(voters)/2 {
		s.cfg.Logger.Warn("the leader's disk is slow, and no majority has quicker ones", "waits", waits, "quick", len(quick), "voters", len(voters))
		return true
	}
	to := slices.MaxFunc(quick, func(a, b forward.Status) int {
		return cmp.Or(cmp.Compare(a.LastIndex, b.LastIndex), strings.Compare(b.ID, a.ID))
	})
	if !s.replica.Leads(term) {
		return true
	}
	s.cfg.Logger.Warn("the leader's disk is slow: another leads", "waits", waits, "to", to.Name)
	if err := s.replica.Stand(to.ID); err != nil {
		s.cfg.Logger.Warn("the lead was not given away", "to", to.Name, "err", err)
	}
	return true
}

// DiskWaits is how long a write to this server's disk has been under way, 0 if none is, and whether a leader gives way.
func (s *Store) DiskWaits() (waits time.Duration, slow bool) { return s.replica.DiskWaits() }

// quickVoters asks the other voters, and returns those that follow this server and whose disks are quick.
func (s *Store) quickVoters(voters []Server) []forward.Status {
	ctx, cancel := context.WithTimeout(s.ctx, askLimit)
	defer cancel()
	answers := askEach(voters, s.id(), func(server Server) (forward.Status, error) { return s.status(ctx, server) })
	var quick []forward.Status
	for _, status := range answers {
		if status.SyncSlowest < quickMax && status.Leader == s.id() {
			quick = append(quick, status)
		}
	}
	return quick
}
