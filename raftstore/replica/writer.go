package replica

import (
	"fmt"

	"github.com/setpoint-io/setpoint/raftstore/replica/marks"
	"github.com/setpoint-io/setpoint/raftstore/replica/termstore"
)

// checkWriter refuses a log that another member wrote than the one of the marker, or another server than name.
func checkWriter(stable *termstore.Store, name string, mark *marks.Marker) error {
	stored, err := stable.Writer()
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
