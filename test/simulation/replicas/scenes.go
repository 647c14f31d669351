package replicas

import (
	"fmt"
	"time"
)

const (
	// slowSync is how long the slow disk of a leader takes for a write: it does not hang, so the server goes on.
	slowSync = 3 * time.Second
	// giveWayLimit is how long a leader with a slow disk may hold everybody up, and servedAfter for how long is looked then.
	giveWayLimit, servedAfter = 6 * time.Second, 3 * time.Second
	// quickMax is below what a leader takes for quick.
	quickMax = 100 * time.Millisecond
	// servedMin is how many writes are acknowledged in servedAfter at least: the clients try some ten in a second.
	servedMin = 12
	// waitedFor is how long servers that lost their disks are watched.
	waitedFor = 5 * time.Second
)

// slowLeader makes the disk of the leader slow while everything else is well: another has to lead, and everybody is served again
// who does not call that server itself.
func (w *World) slowLeader() error {
	if err := w.until(healLimit, w.judge.quickDisks); err != nil {
		return err
	}
	for _, s := range w.members() {
		if store := s.running(); store != nil && store.Leadership().Leader {
			return w.slowDown(s)
		}
	}
	return nil
}

func (w *World) slowDown(s *server) error {
	w.note("slow leader %s", s.name)
	s.slowDown(slowSync)
	s.setHarmed(true) // one append may take several syncs, and the server take its disk for stalled
	w.avoided.Store(s)
	if err := w.until(giveWayLimit, nil); err != nil {
		return err
	}
	before := w.judge.writesTold()
	if err := w.until(servedAfter, nil); err != nil {
		return err
	}
	if n := w.judge.writesTold() - before; n < servedMin {
		return fmt.Errorf("a leader with a slow disk holds everybody up: %d writes in %v, after %v", n, servedAfter, giveWayLimit)
	}
	s.slowDown(syncTime)
	w.avoided.Store(nil)
	if err := w.until(slowSync*3, nil); err != nil { // what is under way ends as it began
		return err
	}
	if s.stopped() != nil {
		w.nemesis.revive(s)
	} else {
		s.setHarmed(false)
	}
	return w.until(healLimit, w.judge.healed)
}

// quickDisks reports whether all servers know their disks to be quick again: until then a leader gives way to none of them.
func (j *judge) quickDisks() bool {
	for _, s := range j.world.members() {
		j.awaited = s.name + " has a quick disk"
		if store := s.running(); store == nil || store.Status().SyncSlowest >= quickMax {
			return false
		}
	}
	return true
}

// foundAgain kills all servers, takes the disks of all but one away, and starts those: there was a cluster, so they must not
// found another.
func (w *World) foundAgain() error {
	members := w.members()
	for _, s := range members {
		if s.begin(true) {
			w.task(func() { s.halt(true) })
		}
	}
	if err := w.until(5*time.Second, nil); err != nil {
		return err
	}
	for _, s := range members[1:] {
		s.wipe()
		w.start(s, w.spread(time.Second))
	}
	w.judge.setOrphans(members[1:])
	return w.until(waitedFor, nil)
}
