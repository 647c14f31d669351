package shares

import (
	"fmt"
	"sync"

	"github.com/setpoint-io/setpoint/internal/clip"
)

// nameBytesMax is how much of a holder's name a refusal repeats.
const nameBytesMax = 128

// Places are taken by holders and given back. They are safe for concurrent use.
type Places struct {
	what   string
	limits Limits

	mu      sync.Mutex
	holders map[Holder]int // without those that have none
	taken   int            // by tenants
	refused uint64
}

// New makes places that are all free; what they are is said in refusals and metrics, in the plural.
func New(what string, limits Limits) *Places {
	return &Places{what: what, limits: limits, holders: map[Holder]int{}}
}

// FullError is why a holder got no place.
type FullError struct {
	What string
	// Holder had Has places when it was refused, and all tenants Taken of All.
	Holder          string
	Has, Taken, All int
	Privileged      bool
}

// Error implements error.
func (e *FullError) Error() string {
	name := clip.Text(e.Holder, nameBytesMax)
	switch {
	case e.Privileged:
		return fmt.Sprintf("too many %s: %d belong to %s", e.What, e.Has, name)
	case e.Has == 0:
		return fmt.Sprintf("too many %s: %d of %d are taken, and none is left for %s", e.What, e.Taken, e.All, name)
	}
	return fmt.Sprintf("too many %s: %d belong to %s, which is its share while %d of %d are taken", e.What, e.Has, name, e.Taken, e.All)
}

// Enter takes a place. It never waits: if the holder has its share, the error is a *FullError. leave gives the place back and must be
// called once.
func (p *Places) Enter(h Holder) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	has := p.holders[h]
	if !p.limits.fits(h, has, p.taken) {
		p.refused++
		return nil, &FullError{What: p.what, Holder: h.Name, Has: has, Taken: p.taken, All: p.limits.All, Privileged: h.Privileged}
	}
	p.holders[h]++
	if !h.Privileged {
		p.taken++
	}
	return func() { p.leave(h) }, nil
}

func (p *Places) leave(h Holder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.holders[h]--; p.holders[h] == 0 {
		delete(p.holders, h)
	}
	if !h.Privileged {
		p.taken--
	}
}
