package replicas

import (
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
)

// revivedFor is how long a server is watched that came back.
const revivedFor = 3 * time.Second

// revived starts a server with its old directory, as a machine does that was off while all others were restored from a backup, and
// later makes it anew of the same backup as them.
func (w *World) revived(s *server, archive []byte, begins time.Time) error {
	w.note("revive %s", s.name)
	w.start(s, time.Millisecond)
	if err := w.until(revivedFor, nil); err != nil {
		return err
	}
	if s.begin(true) {
		w.task(func() { s.halt(true) })
	}
	err := w.until(restoreLimit, func() bool {
		w.judge.awaited = s.name + " has ended"
		return s.running() == nil
	})
	if err != nil {
		return err
	}
	if err := s.restore(archive, begins); err != nil {
		return err
	}
	w.judge.formerEnded(s)
	w.start(s, time.Millisecond)
	return w.until(healLimit, w.judge.healed)
}

func (j *judge) formerEnded(s *server) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.former = nil
	j.sights[s] = &sight{votes: map[uint64]string{}}
}

// lookAtFormer checks that a revived server keeps to itself: it has no leader, and keeps its life. It may have stopped itself.
func (j *judge) lookAtFormer(s *server, store *raftstore.Store) {
	if l := store.Leadership(); l.Ready {
		j.broken("%s has the directory of a former life and follows the leader %s of the next", s.name, l.LeaderID)
	}
	if life := store.Root().Life; life != "" && life != j.formerLife {
		j.broken("%s has the directory of a former life, and the data of the life %s", s.name, life)
	}
}
