package pace

import (
	"errors"
	"fmt"
	"sync"
)

// StepsMax is how many steps of one loop may wait for work.
const StepsMax = 100

// Errors of orders.
var (
	ErrNotPaused = errors.New("it is not paused: pause it first")
	ErrSteps     = fmt.Errorf("%d steps wait for work already", StepsMax)
)

// Pace has the gates of the loops of one server. The zero value is ready: nothing is paused. It is safe for concurrent use.
type Pace struct {
	mu    sync.Mutex
	gates map[string]*Gate // by queue
}

// Gate is that of a queue; nil of a nil Pace.
func (p *Pace) Gate(queue string) *Gate {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gates == nil {
		p.gates = map[string]*Gate{}
	}
	if p.gates[queue] == nil {
		p.gates[queue] = &Gate{changed: make(chan struct{})}
	}
	return p.gates[queue]
}

// State tells whether a queue's loop is paused, and how many passes of it may yet begin.
func (p *Pace) State(queue string) (paused bool, steps int) {
	if p == nil {
		return false, 0
	}
	return p.Gate(queue).state()
}

// Paused reports whether a queue's loop is.
func (p *Pace) Paused(queue string) bool {
	paused, _ := p.State(queue)
	return paused
}

// End has all loops go on: the term is over.
func (p *Pace) End() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, gate := range p.gates {
		gate.Resume()
	}
}
