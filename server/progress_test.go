package server

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/sdnotify"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/founded"
)

// TestStartsInDoubt: what somebody must decide is told from what another start may mend.
func TestStartsInDoubt(t *testing.T) {
	for err, doubt := range map[error]bool{
		nil: false, raftstore.ErrForeignData: true, raftstore.ErrCorrupt: true, raftstore.ErrStateLost: true, raftstore.ErrDiskWentBack: true,
		raftstore.ErrCommittedLost: true, raftstore.ErrFeatureLevel: true, founded.ErrBefore: true,
		raftstore.ErrRemoved: false, raftstore.ErrUndecided: false, raftstore.ErrNoLeader: false, errTokenFile: false, errStuck: false,
	} {
		got := judgeStart(err)
		if errors.As(got, new(process.InDoubt)) != doubt || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// TestDamageWhileItRuns is no doubt: the next start has the others give the data back.
func TestDamageWhileItRuns(t *testing.T) {
	for _, failure := range []error{raftstore.ErrCorrupt, raftstore.ErrRemoved} {
		server := &Server{fatal: make(chan error, 1)}
		server.fail(failure)
		o := &Parsed{service: sdnotify.Open(slog.New(slog.DiscardHandler))}
		if err := o.ended(t.Context(), server); !errors.Is(err, failure) || errors.As(err, new(process.InDoubt)) {
			t.Errorf("%v: %v", failure, err)
		}
	}
}
