package replicas

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/replica"
)

const (
	// restoreLimit bounds one step of the scene.
	restoreLimit = 10 * time.Second
	// writesLost is how many writes follow the backup, and are gone after the restore.
	writesLost = 20
)

// restored makes all servers but one anew of a backup, whatever the clock of the machine says, and revives that one later. The
// cluster has what the backup holds, and gives no revision out a second time.
func (w *World) restored() error {
	archive, kept, err := w.backup()
	if err != nil {
		return err
	}
	founders := w.servers[:w.plan.Servers]
	former := founders[len(founders)-1]
	if err := w.haltAll(); err != nil {
		return err
	}
	w.judge.nextLife(former)
	begins := w.wrongClock()
	for _, s := range founders[:len(founders)-1] {
		if err := s.restore(archive, begins); err != nil {
			return fmt.Errorf("%s is not restored: %w", s.name, err)
		}
		w.start(s, w.spread(time.Second))
	}
	if err := w.until(healLimit, w.judge.othersServe); err != nil {
		return err
	}
	if err := w.until(restoreLimit, w.judge.hold(kept)); err != nil {
		return err
	}
	return w.revived(former, archive, begins)
}

// backup makes an archive, says what is in it, and writes more.
func (w *World) backup() (archive []byte, kept map[string]string, err error) {
	var b bytes.Buffer
	err = w.perform("a backup", func(ctx context.Context) error {
		store := w.servers[0].running()
		if _, err := store.Backup(ctx, &b); err != nil {
			return err
		}
		kept = valuesOf(store)
		for i := range writesLost {
			op := command.Op{Kind: command.Put, Key: fmt.Sprint(prefix, "lost/", i), Value: fmt.Append(nil, "lost-", i)}
			if _, err := store.Propose(ctx, command.Command{RequestID: string(op.Value), Ops: []command.Op{op}}); err != nil {
				return err
			}
		}
		return nil
	})
	return b.Bytes(), kept, err
}

// perform does something beside the world, which must succeed.
func (w *World) perform(what string, do func(context.Context) error) error {
	result := make(chan error, 1)
	w.task(func() { result <- do(w.ctx) })
	w.judge.awaited = what
	var err error
	ended := w.until(restoreLimit, func() bool {
		w.judge.awaited = what
		select {
		case err = <-result:
			return true
		default:
			return false
		}
	})
	if ended != nil {
		return ended
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// haltAll ends all servers, the guest for good.
func (w *World) haltAll() error {
	for _, s := range w.members() {
		if s.begin(true) {
			w.task(func() { s.halt(true) })
		}
	}
	w.guest.setAway(true)
	return w.until(restoreLimit, func() bool {
		w.judge.awaited = "all servers have ended"
		for _, s := range w.servers {
			if !s.ended() {
				return false
			}
		}
		return true
	})
}

// restore makes the disk of a server that is down anew.
func (s *server) restore(archive []byte, begins time.Time) error {
	s.wipe()
	cfg := raftstore.RestoreConfig{
		Disk: replica.MemoryDisk{Memory: s.disk}, Name: s.name, Servers: s.config().InitialServers, Time: begins, Founded: &s.trust,
	}
	_, err := raftstore.Restore(s.world.ctx, bytes.NewReader(archive), cfg)
	return err
}

// valuesOf are all values of clients that a server has.
func valuesOf(store *raftstore.Store) map[string]string {
	values := map[string]string{}
	for r := range store.Root().All(prefix) {
		values[r.Key] = string(r.Value)
	}
	return values
}

// nextLife lets the judge expect a cluster made of a backup, beside a server that has not heard of it. What was told stays told: every
// revision of the new life lies beyond.
func (j *judge) nextLife(former *server) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.told = max(j.told, j.newest)
	j.former, j.formerLife, j.life = former, j.life, ""
	for _, s := range j.world.servers {
		j.sights[s] = &sight{votes: map[uint64]string{}}
	}
}

// hold reports whether a server of the new life has what the backup holds, and nothing else.
func (j *judge) hold(kept map[string]string) func() bool {
	return func() bool {
		j.awaited = "what the backup holds"
		store := j.world.servers[0].running()
		return store != nil && maps.Equal(valuesOf(store), kept)
	}
}

// othersServe reports whether the restored servers have a leader, and revisions beyond all that were told.
func (j *judge) othersServe() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.world.members() {
		store := s.running()
		switch {
		case s == j.former:
			continue
		case store == nil || !store.Leadership().Ready || store.Root().Revision == 0:
			j.awaited = s.name + " serves what was restored"
			return false
		case store.Root().Revision <= j.told:
			j.broken("%s was restored to revision %d, and %d was told before", s.name, store.Root().Revision, j.told)
		}
	}
	return true
}
