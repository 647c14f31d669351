package replica

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/setpoint-io/setpoint/raftstore/founded"
	"github.com/setpoint-io/setpoint/raftstore/replica/marks"
)

// Phase is how far a replica has come on its way to be a member.
type Phase string

const (
	// Fresh: a founder without data that has not decided with its peers yet
	// whether there is a cluster. It takes no part in raft until Found or Rejoin.
	Fresh Phase = "fresh"
	// Damaged: what is stored must not be used. It takes no part until Rejoin.
	Damaged Phase = "damaged"
	// Restored: a backup was restored on this server, and the servers it is for have
	// not begun with it. It takes no part until Found.
	Restored Phase = "restored"
	// Joining: raft runs under a new id and waits to be admitted.
	Joining Phase = "joining"
	// Held: raft runs on a log of its own.
	Held Phase = "held"
)

// Beginning is how this replica's membership began, for its peers to know.
type Beginning struct {
	Phase Phase
	// ID is the member id; a Damaged or Fresh replica has only its name.
	ID string
	// Nonce is that of a founder's data directory.
	Nonce string
	// Founders are the nonces that were counted when this server founded the
	// cluster, by name: those founders are fresh still, and may found it too.
	Founders map[string]string
	// Life is the cluster's life that it has data of, "" if none; of a Restored replica
	// those to begin with. Backup tells which backup was restored.
	Life, Backup string
}

// Undecided reports whether the replica takes no part until Found or Rejoin.
func (b *Beginning) Undecided() bool {
	return b.Phase == Fresh || b.Phase == Damaged || b.Phase == Restored
}

// Beginning returns how far this replica is.
func (r *Replica) Beginning() Beginning {
	mark := r.marked()
	b := Beginning{Phase: Held, ID: mark.ServerID, Nonce: mark.Nonce, Founders: maps.Clone(mark.Founders), Backup: mark.Backup}
	b.Life, _ = r.life()
	switch mark.State {
	case marks.Restored:
		b.Phase = Restored
	case marks.Fresh, marks.Founding:
		b.Phase = Fresh
	case marks.Joining:
		b.Phase = Joining
	case marks.Damaged, marks.Discarding:
		b.Phase, b.ID = Damaged, r.cfg.ID
	}
	return b
}

// begin starts raft, if what is stored decides under which id; otherwise Found or
// Rejoin will.
func (r *Replica) begin(exists bool) error {
	mark := r.marked()
	switch {
	case mark != nil && mark.State == marks.Restored:
		return nil
	case exists, mark != nil && mark.State == marks.Joining:
		return r.start(mark.ServerID)
	case mark != nil && mark.State == marks.Founding:
		return r.foundAs(mark)
	}
	if _, err := r.storedTerm(); err != nil {
		return err
	}
	if !r.isFounder() {
		return r.join()
	}
	if mark == nil {
		mark = &marks.Marker{ServerID: r.cfg.ID, ClusterID: r.cfg.ClusterID, State: marks.Fresh}
	}
	if mark.Nonce == "" {
		mark.Nonce = randomHex(nonceBytes)
		if err := r.saveMark(mark); err != nil {
			return err
		}
	}
	if r.hasPeers() {
		return nil
	}
	mark.Founders = map[string]string{r.cfg.ID: mark.Nonce}
	r.remember(mark)
	return r.foundAs(mark)
}

// Found makes a Fresh or Restored replica a founder of the cluster, together with those
// whose nonces are given. The caller has asked them. If they begin with the data of one
// of them, life is its life. It stays Fresh, without an error, if Config.Founds returns founded.ErrBefore.
func (r *Replica) Found(founders map[string]string, life string) error {
	mark := r.marked()
	state := marks.Founding
	switch {
	case mark.State == marks.Restored && mark.Life != "":
		state = marks.Held
	case life != "":
		state = marks.Joining // under its own name, which has not voted in this life
	}
	mark = mark.With(state)
	mark.Founders, mark.Backup = maps.Clone(founders), ""
	if life != "" {
		mark.Life = life
	}
	if err := r.saveMark(mark); err != nil {
		return err
	}
	if state == marks.Founding {
		return r.foundAs(mark)
	}
	return r.start(mark.ServerID)
}

func (r *Replica) foundAs(mark *marks.Marker) error {
	if r.cfg.Founds != nil {
		if err := r.cfg.Founds(maps.Clone(mark.Founders)); errors.Is(err, founded.ErrBefore) && r.hasPeers() {
			return r.saveMark(mark.Uncounted()) // it has not voted: Found or Rejoin may follow
		} else if err != nil {
			return err
		}
	}
	r.founding = true
	return r.start(mark.ServerID)
}

// join starts raft without a configuration, under an id never used before.
func (r *Replica) join() error {
	if err := r.saveMark(r.newcomer()); err != nil {
		return err
	}
	return r.start(r.marked().ServerID)
}

func (r *Replica) newcomer() *marks.Marker {
	return &marks.Marker{ServerID: newMemberID(r.cfg.ID), ClusterID: r.cfg.ClusterID, State: marks.Joining}
}

// Rejoin lets a Damaged replica, or a Fresh or Restored one without data, come back under a new id, to be admitted
// by the leader. Damaged data is set aside, not deleted. The caller has seen that
// there is a leader who can admit it.
func (r *Replica) Rejoin(ctx context.Context) error {
	if mark := r.marked(); mark.State == marks.Fresh || mark.State == marks.Restored {
		return r.join()
	}
	next := r.newcomer()
	if r.cfg.Storage != nil {
		if err := r.cfg.Storage.Close(); err != nil {
			r.cfg.Logger.Warn("closing damaged data", "err", err)
		}
	}
	if err := r.cfg.Disk.setAside(next); err != nil {
		return err
	}
	storage, err := r.cfg.Disk.Open(ctx)
	if err != nil {
		return err
	}
	if err := r.attach(storage); err != nil {
		return err
	}
	exists, err := r.inspect(ctx)
	if err != nil {
		return fmt.Errorf("after setting damaged data aside: %w", err)
	}
	r.log.afterWrite = (&markOnWrite{save: r.saveHeld}).wrote
	if exists {
		return errors.New("damaged data was set aside, but is still there")
	}
	return r.start(r.marked().ServerID)
}

// mayRejoin reports whether the others can give back what is damaged here.
func (r *Replica) mayRejoin(err error) bool {
	damage := errors.Is(err, ErrCorrupt) || errors.Is(err, ErrStateLost) || errors.Is(err, ErrDiskWentBack) ||
		errors.Is(err, ErrDiverged) || errors.Is(err, ErrLifeEnded)
	return damage && r.hasPeers() && r.cfg.Disk != nil
}

// damaged notes that what is stored must not be used. Nothing is changed on disk.
func (r *Replica) damaged(reason error) {
	r.remember(&marks.Marker{ServerID: r.cfg.ID, ClusterID: r.cfg.ClusterID, State: marks.Damaged})
	r.cfg.Logger.Error("stored data cannot be used; it will be set aside when a leader can give it back", "err", reason)
}

// markDamaged makes the next start find this one's data damaged: what was noticed
// in use may not show on disk.
func (r *Replica) markDamaged() {
	mark := &marks.Marker{ServerID: r.marked().ServerID, ClusterID: r.cfg.ClusterID, State: marks.Damaged}
	if err := r.cfg.Storage.marks.Save(mark); err != nil {
		r.cfg.Logger.Warn("cannot mark the data as damaged", "err", err)
	}
}
