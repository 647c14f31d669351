package replica

import (
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/replica/marks"
)

// memberIDKey is where the stable store keeps which member's log, term and vote are beside it.
var memberIDKey = []byte("setpoint/member-id")

// writerOf is the member that wrote the log, "" if there is none or it is a founder's of an older release.
func writerOf(stable raft.StableStore) (string, error) {
	stored, err := stable.Get(memberIDKey)
	if isNotFound(err) {
		return "", nil
	}
	return string(stored), err
}

// signLog writes beside the log whose it is: with term and vote of another member this one could vote twice in a term.
func (r *Replica) signLog() error {
	stored, err := writerOf(r.stable)
	if err != nil || stored == r.id {
		return err
	}
	return r.stable.Set(memberIDKey, []byte(r.id))
}

// checkWriter refuses a log that another member wrote than the one of the marker, or another server than name.
func checkWriter(stable raft.StableStore, name string, mark *marks.Marker) error {
	stored, err := writerOf(stable)
	switch {
	case err != nil || stored == "":
		return err
	case MemberName(stored) != name:
		return fmt.Errorf("%w: raft/ belongs to server %q, this is %q", ErrForeignData, MemberName(stored), name)
	case mark != nil && stored != mark.ServerID:
		return fmt.Errorf("%w: raft/ was written by the member %s, state-marker/ belongs to %s", ErrForeignData, stored, mark.ServerID)
	}
	return nil
}
