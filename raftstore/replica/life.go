package replica

import (
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/replica/transport"
)

// life is the life that the data here belong to, "" if it has no name or there are none,
// and the one that was ended by a recovery for it, if that is known.
func (r *Replica) life() (life, former string) {
	root := r.state.Root()
	if mark := r.marked(); mark.Life != "" && mark.Life != root.Life {
		return mark.Life, ""
	}
	return root.Life, root.FormerLife
}

// keepLife makes the marker tell of the life of the state: the log tells of it only once
// some leader has said how far it is committed.
func (r *Replica) keepLife() error {
	root := r.state.Root()
	if root.Life == "" || r.marked().Life == root.Life {
		return nil
	}
	r.changeMu.Lock()
	defer r.changeMu.Unlock()
	mark := r.marked()
	if mark.Life != "" && mark.Life != root.FormerLife {
		return fmt.Errorf("%w: log of life %s, marker of life %s", ErrForeignData, root.Life, mark.Life)
	}
	next := mark.With(mark.State)
	next.Life = root.Life
	return r.saveMark(next)
}

// introduce is what this member says of itself to another.
func (r *Replica) introduce(to string) transport.Greeting {
	life, former := r.life()
	return transport.Greeting{To: to, From: r.id, Life: life, FormerLife: former, Had: r.transport.Had(raft.ServerID(to), r.committedIn)}
}

// meet judges what another member says, before raft hears of it. Where one of the two
// knows of no life, it had no name yet when it was stopped.
func (r *Replica) meet(g transport.Greeting) error {
	life, _ := r.life()
	switch {
	case life == "" || g.Life == "" || g.Life == life:
		return r.checkHad(g)
	case g.FormerLife == life:
		err := fmt.Errorf("%w: %s was recovered from %s and has the life %s now, this server's data are of the life %s", ErrLifeEnded, MemberName(g.From), MemberName(g.From), g.Life, life)
		r.fail(err)
		return err
	}
	return fmt.Errorf("%w: %s has the life %s, %s the life %s: one of them was restored or recovered apart from the other", ErrOtherLife, MemberName(g.From), g.Life, r.cfg.ID, life)
}
