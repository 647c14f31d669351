package reconcile

import (
	"context"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/controllers/reconcile/actions"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
)

// OwnLoop is a loop that Run does not run, such as the scheduler, whose passes are noted as those of Run are.
type OwnLoop struct {
	// Controller is the loop's name.
	Controller string
	// Numbers count; nil: nobody does, and Begin returns nil.
	Numbers *numbers.Loop
	// Now is the time by which the loop acts.
	Now func() time.Time
}

// Attempt is one pass of an OwnLoop. Parts of it may go on after the call that began it: what all of them write is the pass's, which is
// noted when the last one has ended. All methods may be called from any goroutine; those of a nil Attempt account nothing.
type Attempt struct {
	loop  OwnLoop
	key   func() string
	begun time.Time
	did   tally

	mu    sync.Mutex
	parts int
	took  time.Duration
	err   error // the first one
}

// Begin begins a pass with one part, for which End must be called. The key is kept as long as the pass is remembered.
func (l OwnLoop) Begin(key func() string) *Attempt {
	if l.Numbers == nil {
		return nil
	}
	return &Attempt{loop: l, key: key, begun: l.Now(), parts: 1}
}

// In accounts what is written under the context to the pass. It is not watched for circles, since nothing would make its key rest.
func (a *Attempt) In(ctx context.Context) context.Context {
	if a == nil {
		return ctx
	}
	wrote := func(string, uint64) {
		a.loop.Numbers.Wrote(a.loop.Now(), "", "", 0)
		a.did.wrote()
	}
	return withPass(ctx, Pass{Controller: a.loop.Controller, wrote: wrote, did: func(line actions.Line) { a.did.did(line) }})
}

// Go runs a part of the pass in a group. It is called by another part of the pass.
func (a *Attempt) Go(group *sync.WaitGroup, part func() error) {
	a.Hold()
	group.Go(func() { a.End(part()) })
}

// Hold keeps the pass open for a part that waits its turn, for which Release or End must be called.
func (a *Attempt) Hold() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.parts++
}

// Release ends a part that was held. Its waiting is not among what the pass took.
func (a *Attempt) Release() {
	if a != nil {
		a.end(0, nil)
	}
}

// End ends a part; the error says why it failed.
func (a *Attempt) End(err error) {
	if a != nil {
		a.end(a.loop.Now().Sub(a.begun), err)
	}
}

func (a *Attempt) end(took time.Duration, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.took = max(a.took, took)
	if a.err == nil {
		a.err = err
	}
	if a.parts--; a.parts == 0 {
		a.loop.Numbers.Passed(a.did.of(numbers.Pass{Key: a.key, At: a.loop.Now(), Took: a.took, Err: a.err}))
	}
}
