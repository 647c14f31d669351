package pace

import (
	"context"
	"sync"
)

// Gate is where passes of one loop begin. All methods of a nil Gate let pass.
type Gate struct {
	mu      sync.Mutex
	paused  bool
	pauses  int           // how many there ever were
	steps   int           // that nobody has taken
	changed chan struct{} // closed by the next change, which makes another
}

// Turn is leave to begin a pass.
type Turn struct {
	step  bool
	pause int // to which the step belongs
}

// Enter waits until a pass may begin, and takes a step if the loop is paused; ok is false if ctx has ended.
func (g *Gate) Enter(ctx context.Context) (t Turn, ok bool) {
	for g != nil && ctx.Err() == nil {
		t, entered, changed := g.enter()
		if entered {
			return t, true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Turn{}, false
		}
	}
	return Turn{}, ctx.Err() == nil
}

func (g *Gate) enter() (t Turn, entered bool, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !g.paused:
		return Turn{}, true, nil
	case g.steps > 0:
		g.steps--
		return Turn{step: true, pause: g.pauses}, true, nil
	}
	return Turn{}, false, g.changed
}

// Return gives back the step of a turn for which there was no work. It is void once the pause has ended that it belongs to.
func (g *Gate) Return(t Turn) {
	if g == nil || !t.step {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.paused && t.pause == g.pauses {
		g.steps++
		g.tell()
	}
}

// Pause holds the loop from its next pass on.
func (g *Gate) Pause() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.paused {
		g.paused = true
		g.pauses++
	}
}

// Step lets one pass of a paused loop begin, or the next one that there is work for.
func (g *Gate) Step() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !g.paused:
		return ErrNotPaused
	case g.steps >= StepsMax:
		return ErrSteps
	}
	g.steps++
	g.tell()
	return nil
}

// Resume ends a pause, and forgets the steps that nobody has taken.
func (g *Gate) Resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.paused, g.steps = false, 0
	g.tell()
}

func (g *Gate) state() (paused bool, steps int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.paused, g.steps
}

// tell wakes who waits. The lock is held.
func (g *Gate) tell() {
	close(g.changed)
	g.changed = make(chan struct{})
}
