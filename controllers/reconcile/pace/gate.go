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

// Turn is leave to begin a pass. One of a step is good until the pause that it belongs to ends.
type Turn struct {
	step  bool
	pause int
}

// Enter waits until a pass may begin, and takes a step if the loop is paused, unless held is one; ok is false if ctx has ended.
func (g *Gate) Enter(ctx context.Context, held Turn) (t Turn, ok bool) {
	for g != nil {
		t, entered, changed := g.enter(held)
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

func (g *Gate) enter(held Turn) (t Turn, entered bool, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !g.paused:
		return Turn{}, true, nil
	case g.good(held):
		return held, true, nil
	case g.steps > 0:
		g.steps--
		return Turn{step: true, pause: g.pauses}, true, nil
	}
	return Turn{}, false, g.changed
}

// Begin reports whether the pass may begin for which its worker entered: the loop may have been paused since, while there was no work.
func (g *Gate) Begin(t Turn) bool {
	if g == nil {
		return true
	}
	_, entered, _ := g.enter(t)
	return entered
}

func (g *Gate) good(t Turn) bool { return t.step && t.pause == g.pauses }

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
	case g.steps == StepsMax:
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
