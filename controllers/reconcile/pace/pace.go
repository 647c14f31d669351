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
	ErrTerm      = errors.New("the loops do not act in the term that the order is for: try again")
)

// Pace has the gates of the loops of one server. The zero value is ready: nothing is paused. It is safe for concurrent use.
type Pace struct {
	mu    sync.Mutex
	term  uint64           // in which the loops act; 0: they do not
	gates map[string]*Gate // by queue
}

// Gate is that of a queue; nil of a nil Pace.
func (p *Pace) Gate(queue string) *Gate {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gate(queue)
}

func (p *Pace) gate(queue string) *Gate {
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

// Held reports whether a queue's loop begins nothing now, not even for a step.
func (p *Pace) Held(queue string) bool {
	paused, steps := p.State(queue)
	return paused && steps == 0
}

// Order has do order something of a queue's loop in a term; it gives ErrTerm when the loops do not act in that one.
func (p *Pace) Order(term uint64, queue string, do func(*Gate) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.term != term {
		return ErrTerm
	}
	return do(p.gate(queue))
}

// Begin says that the loops act in a term from now on. None of them is held.
func (p *Pace) Begin(term uint64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.term = term
	for _, gate := range p.gates {
		gate.Resume()
	}
}

// End has all loops go on: the term is over.
func (p *Pace) End() { p.Begin(0) }
