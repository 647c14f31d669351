package raftstore

import (
	"errors"
	"fmt"

	"github.com/setpoint-io/setpoint/raftstore/contact"
	"github.com/setpoint-io/setpoint/raftstore/forward"
	"github.com/setpoint-io/setpoint/raftstore/replica"
)

var (
	// ErrOverloaded: too many commands wait. The command did not take effect.
	ErrOverloaded = forward.ErrOverloaded
	// ErrNoSpace: most servers have little room left on their disks, or the leader in its memory, and
	// the command is not essential. It did not take effect. The text says which servers and what to do.
	ErrNoSpace = forward.ErrNoSpace
	// ErrOutcomeUnknown: the command may or may not have taken effect, now or
	// later. It wraps the reason.
	ErrOutcomeUnknown = forward.ErrOutcomeUnknown
	// ErrNoLeader: no leader was found in time, or this server is without one; see Store.Led. The command did not
	// take effect.
	ErrNoLeader = contact.ErrNoLeader
	// ErrNotLeader: only the leader can do this, and this replica is not it.
	ErrNotLeader = replica.ErrNotLeader
	// ErrUnsafe: the change of membership could cost the quorum, or a live server its
	// place.
	ErrUnsafe = forward.ErrUnsafe
	// ErrUnknownServer: no member has the name.
	ErrUnknownServer = forward.ErrUnknownServer
	// ErrRemoved: this server was removed from the cluster, perhaps while it was down, or another one has taken its place.
	ErrRemoved = errors.New("was removed from this cluster")
	// ErrNameTaken: a member at another address has the name of a server that is to be added.
	ErrNameTaken = forward.ErrNameTaken
	// ErrBadChange: the change of membership makes no sense.
	ErrBadChange = forward.ErrBadChange
	// ErrStopped: the store was shut down or stopped itself.
	ErrStopped = replica.ErrStopped
	// ErrStateLost: see replica.ErrStateLost.
	ErrStateLost = replica.ErrStateLost
	// ErrDiskWentBack: see replica.ErrDiskWentBack.
	ErrDiskWentBack = replica.ErrDiskWentBack
	// ErrForeignData: the data directory belongs to another cluster or server.
	ErrForeignData = replica.ErrForeignData
	// ErrCorrupt: stored bytes are not what was written.
	ErrCorrupt = replica.ErrCorrupt
	// ErrCommittedLost: see replica.ErrCommittedLost.
	ErrCommittedLost = replica.ErrCommittedLost
	// ErrDiverged: see replica.ErrDiverged.
	ErrDiverged = replica.ErrDiverged
	// ErrUndecided: see replica.ErrUndecided.
	ErrUndecided = replica.ErrUndecided
)

// RemovedError is ErrRemoved of a server, and says what to do.
func RemovedError(name, address string) error {
	return fmt.Errorf("%s %w: stop it and run 'setpoint reset' on its machine; or, to let it join again, stop it, empty its data directory, start it "+
		"and run 'setpoint cluster join %s=%s'", name, ErrRemoved, name, address)
}
