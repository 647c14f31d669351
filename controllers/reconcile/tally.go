package reconcile

import (
	"sync"

	"github.com/setpoint-io/setpoint/controllers/reconcile/actions"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
)

// tally is what one pass has done so far. Loops write from several goroutines.
type tally struct {
	mu     sync.Mutex
	writes int
	acts   []actions.Line
}

func (t *tally) wrote() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes++
}

// did keeps the first acts of the pass.
func (t *tally) did(line actions.Line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.acts) < numbers.ActsMax {
		t.acts = append(t.acts, line.Clipped())
	}
}

// of is the pass with what it has done.
func (t *tally) of(pass numbers.Pass) numbers.Pass {
	t.mu.Lock()
	defer t.mu.Unlock()
	pass.Writes, pass.Acts = t.writes, t.acts
	return pass
}
