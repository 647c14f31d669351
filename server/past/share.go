package past

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/internal/shares"
	"github.com/setpoint-io/setpoint/raftstore/history"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

const (
	// askedMax is how many reads tenants have under way and waiting; one has half of what is left, and 429 beyond it.
	askedMax = 16
	// readMax is how many of them are read at a time, one of each tenant; all privileged callers together have one more.
	readMax = 2
)

// privileged are all who are no tenants: together they take no more than what history.walksMax has beyond readMax.
var privileged = shares.Holder{Name: "administrators and the control plane", Privileged: true}

// Turns divide reads among tenants: whoever asks for much waits behind others who ask for less. A request has one turn, however often it
// reads. They are safe for concurrent use.
type Turns struct {
	places *shares.Places
	turns  *shares.Turns
}

// NewTurns returns those of one server.
func NewTurns() *Turns {
	return &Turns{
		places: shares.New("reads of history", shares.Limits{All: askedMax}), turns: shares.NewTurns(shares.Limits{All: readMax, Privileged: 1}),
	}
}

// turnKey is of a context whose request has its turn.
type turnKey struct{}

// take waits for a turn of the caller, unless the request has it already; the error is a *shares.FullError or the context's. What the
// request reads further gets the context that is returned. The caller calls done.
func (t *Turns) take(ctx context.Context, caller user.Info) (turned context.Context, done func(), err error) {
	if ctx.Value(turnKey{}) != nil {
		return ctx, func() {}, nil
	}
	tenant := auth.Tenant(caller)
	if tenant.Privileged {
		tenant = privileged
	}
	leave, err := t.places.Enter(tenant)
	if err != nil {
		return nil, nil, err
	}
	end, err := t.turns.Wait(ctx, tenant)
	if err != nil {
		leave()
		return nil, nil, err
	}
	return context.WithValue(ctx, turnKey{}, true), func() { end(); leave() }, nil
}

// Shared is a history whose reads are divided among those who ask: nobody's keep others waiting. Who has his share gets an
// history.ErrBusy with the reason. Reads of nobody, as this server's own, are not counted.
type Shared struct {
	*history.History
	turns *Turns
}

// Share divides a history.
func Share(h *history.History, t *Turns) *Shared { return &Shared{h, t} }

func (s *Shared) take(ctx context.Context) (done func(), err error) {
	caller, known := request.UserFrom(ctx)
	if !known {
		return func() {}, nil
	}
	_, done, err = s.turns.take(ctx, caller)
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("%w: %w", history.ErrBusy, err)
	}
	return done, err
}

// At is that of History, in turn.
func (s *Shared) At(ctx context.Context, prefix string, revision uint64) (*state.Root, error) {
	done, err := s.take(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return s.History.At(ctx, prefix, revision)
}

// Changes is that of History, in turn.
func (s *Shared) Changes(ctx context.Context, key string, after uint64, limit int) ([]history.Known, []history.Hole, bool, error) {
	done, err := s.take(ctx)
	if err != nil {
		return nil, nil, false, err
	}
	defer done()
	return s.History.Changes(ctx, key, after, limit)
}

// Between is that of History, in turn.
func (s *Shared) Between(ctx context.Context, w history.Wanted) (*history.Period, error) {
	done, err := s.take(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return s.History.Between(ctx, w)
}

// RevisionAt is that of History, in turn.
func (s *Shared) RevisionAt(ctx context.Context, at time.Time) (uint64, error) {
	done, err := s.take(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	return s.History.RevisionAt(ctx, at)
}
