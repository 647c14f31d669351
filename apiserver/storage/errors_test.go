package storage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// failingLog takes no writes.
type failingLog struct {
	*raftstoretest.Local
	err error
}

func (l *failingLog) Propose(context.Context, command.Command) (command.Result, error) {
	return command.Result{}, l.err
}

// TestOnlyWhatTookNoEffectInvitesARetry: client-go repeats every request whose
// answer carries Retry-After, so a write of unknown outcome must not.
func TestOnlyWhatTookNoEffectInvitesARetry(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		code  int
		retry bool
	}{
		"no leader":            {raftstore.ErrNoLeader, http.StatusServiceUnavailable, true},
		"no leader in time":    {fmt.Errorf("%w (%w)", context.DeadlineExceeded, raftstore.ErrNoLeader), http.StatusGatewayTimeout, true},
		"overloaded":           {raftstore.ErrOverloaded, http.StatusServiceUnavailable, true},
		"disk nearly full":     {fmt.Errorf("%w: server-2", raftstore.ErrNoSpace), http.StatusInsufficientStorage, false},
		"stopping":             {raftstore.ErrStopped, http.StatusServiceUnavailable, true},
		"request ended":        {context.Canceled, http.StatusServiceUnavailable, true},
		"unknown":              {fmt.Errorf("%w: %w", raftstore.ErrOutcomeUnknown, raftstore.ErrNotLeader), http.StatusGatewayTimeout, false},
		"unknown in time":      {fmt.Errorf("%w: %w", raftstore.ErrOutcomeUnknown, context.DeadlineExceeded), http.StatusGatewayTimeout, false},
		"unknown at shutdown":  {fmt.Errorf("%w: %w", raftstore.ErrOutcomeUnknown, raftstore.ErrStopped), http.StatusGatewayTimeout, false},
		"unknown, client gone": {fmt.Errorf("%w: %w", raftstore.ErrOutcomeUnknown, context.Canceled), http.StatusGatewayTimeout, false},
		"invalid":              {command.ErrInvalid, http.StatusBadRequest, false},
	} {
		t.Run(name, func(t *testing.T) {
			log := &failingLog{raftstoretest.NewLocal(state.Options{}), c.err}
			table := New(log, kinds.NewScheme(), kinds.All()).Table(configMaps)
			_, err := table.Write(t.Context(), "n", "a", func(*View) (*Change, error) {
				return &Change{Object: configMap("a", nil)}, nil
			})
			var status apierrors.APIStatus
			if !errors.As(err, &status) {
				t.Fatalf("no Status: %v", err)
			}
			if got := status.Status(); int(got.Code) != c.code {
				t.Errorf("code %d, want %d", got.Code, c.code)
			}
			if _, retry := apierrors.SuggestsClientDelay(err); retry != c.retry {
				t.Errorf("invites a retry: %v, want %v", retry, c.retry)
			}
		})
	}
}
