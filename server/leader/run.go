package leader

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/internal/clusterclock"
)

// restartPause is how long Run waits before it starts act again when it failed
// while leadership lasted.
const restartPause = time.Second

// Leadership says whether this server leads, and in which term.
type Leadership struct {
	Leader bool
	Term   uint64
}

// ErrStreamClosed is returned by Run when the leadership stream ends before ctx.
var ErrStreamClosed = errors.New("leadership stream closed")

// Run calls act for every term in which this server leads. The context that
// act gets ends when leadership does; Run then waits for act before it looks at
// the next change, so that two terms never overlap. Run returns nil when ctx
// ends and ErrStreamClosed when changes is closed.
func Run(ctx context.Context, changes <-chan Leadership, act func(ctx context.Context, term uint64) error) error {
	var current *running
	defer func() { current.stop() }()
	for {
		select {
		case <-ctx.Done():
			return nil
		case change, ok := <-changes:
			if !ok {
				return ErrStreamClosed
			}
			current = current.turn(ctx, change, act)
		}
	}
}

// running is one term of act; nil means that this server does not lead.
type running struct {
	term   uint64
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// turn ends the present term if change differs from it and starts the next.
func (r *running) turn(ctx context.Context, change Leadership, act func(context.Context, uint64) error) *running {
	if r != nil && change.Leader && change.Term == r.term {
		return r
	}
	r.stop()
	if !change.Leader {
		return nil
	}
	return start(ctx, change.Term, act)
}

func start(ctx context.Context, term uint64, act func(context.Context, uint64) error) *running {
	ctx, cancel := context.WithCancel(ctx)
	r := &running{term: term, cancel: cancel}
	r.ended.Go(func() {
		for {
			// act logs its own failure; the term goes on without a gap that
			// anyone but its reader would notice.
			_ = act(ctx, term)
			if !clusterclock.Wait(ctx, clock.RealClock{}, restartPause) {
				return
			}
		}
	})
	return r
}

// stop ends the term and waits for act.
func (r *running) stop() {
	if r == nil {
		return
	}
	r.cancel()
	r.ended.Wait()
}
