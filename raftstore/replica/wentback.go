package replica

import (
	"fmt"

	"github.com/setpoint-io/setpoint/raftstore/replica/transport"
)

// committedIn is how far the log is committed if this server is in the term, in which it
// led, else 0: the leader of another term may have other entries there.
func (r *Replica) committedIn(term uint64) uint64 {
	instance := r.running.Load()
	if instance == nil {
		return 0
	}
	if commit := instance.CommitIndex(); instance.CurrentTerm() == term { // the order matters, as in TellCommit
		return commit
	}
	return 0
}

// checkHad stops this replica if its log lacks what another member knows that it had on its
// disk. It has then forgotten how it voted too, so it must not take part under this id. It
// judges by the log as it is now, which has all that was acknowledged before the other
// spoke.
//
// Once it has voted since it started it goes on: with its vote the others may have elected
// a leader who lacks those entries, and if it stopped now they could do nothing more. The
// member that has the entries stops then, with ErrCommittedLost, and keeps them.
func (r *Replica) checkHad(g transport.Greeting) error {
	last := r.lastIndex()
	if g.Had <= last {
		return nil
	}
	if r.stable.Voted() {
		r.cfg.Logger.Error("this server's disk was put back to an earlier state, and it has voted since: acknowledged writes may be lost",
			"last", last, "had", g.Had, "known to", MemberName(g.From))
		return nil
	}
	err := fmt.Errorf("%w: its log ends at %d, and %s knows that it had all up to %d", ErrDiskWentBack, last, MemberName(g.From), g.Had)
	r.fail(err)
	return err
}

// lastIndex is the last entry of the log and the newest snapshot, before raft runs too.
func (r *Replica) lastIndex() uint64 {
	if instance := r.running.Load(); instance != nil {
		return instance.LastIndex()
	}
	return max(r.log.last.Load(), r.newest)
}
