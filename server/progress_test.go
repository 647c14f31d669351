package server

import (
	"errors"
	"testing"

	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/raftstore"
)

// TestEndsInDoubt: what somebody must decide is told from what another start may mend.
func TestEndsInDoubt(t *testing.T) {
	for err, doubt := range map[error]bool{
		nil: false, raftstore.ErrForeignData: true, raftstore.ErrCorrupt: true, raftstore.ErrStateLost: true, raftstore.ErrDiskWentBack: true,
		raftstore.ErrCommittedLost: true, raftstore.ErrFeatureLevel: true, errTokenFile: true,
		raftstore.ErrUndecided: false, raftstore.ErrNoLeader: false, errStuck: false,
	} {
		got := judgeEnd(err)
		if errors.As(got, new(process.InDoubt)) != doubt || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
}
