package fairness

import (
	"context"
	"slices"
	"sync"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
)

// level is where requests of one priority execute and wait. It is safe for concurrent use.
type level struct {
	name string

	mu     sync.Mutex
	exempt bool
	// seats execute at once; waitLimit requests may wait, flowLimit of them of one flow.
	seats, waitLimit, flowLimit int
	executing, waiting          int
	flows                       map[flowKey]*flow // those with a request here
	counts                      counts
}

// flowKey names a flow: requests of one schema that are not told apart.
type flowKey struct{ schema, distinguisher string }

// flow is one client's, as far as the schema can tell.
type flow struct {
	key       flowKey
	executing int
	waiting   []*ticket
}

// ticket is a request that waits. Its channel is closed when it may execute.
type ticket struct {
	order uint64 // of its arrival
	admit chan struct{}
}

// counts since the server started.
type counts struct{ dispatched, rejected, timedOut, arrived uint64 }

func newLevel(name string) *level {
	return &level{name: name, flows: map[flowKey]*flow{}}
}

// configure sets what the object says. Who waits may go on if there are more seats now.
func (l *level) configure(c *flowcontrolv1.PriorityLevelConfiguration, seats int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.exempt = c.Spec.Type == flowcontrolv1.PriorityLevelEnablementExempt
	l.seats, l.waitLimit, l.flowLimit = seats, 0, 0
	if c.Spec.Limited != nil && c.Spec.Limited.LimitResponse.Queuing != nil {
		queuing := c.Spec.Limited.LimitResponse.Queuing
		l.waitLimit = int(queuing.Queues) * int(queuing.QueueLengthLimit)
		l.flowLimit = int(queuing.HandSize) * int(queuing.QueueLengthLimit)
	}
	l.dispatch()
}

// take waits for the request's turn. It returns nil if that does not come.
func (l *level) take(ctx context.Context, key flowKey, watch bool) *flow {
	f, t := l.enter(key)
	if t == nil {
		return f
	}
	ctx, cancel := waitContext(ctx, watch)
	defer cancel()
	if !l.wait(ctx, f, t) {
		return nil
	}
	return f
}

// enter returns the flow of a request that may execute now. A request that has to wait
// gets a ticket too; one that is refused gets neither.
func (l *level) enter(key flowKey) (*flow, *ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.arrived++
	f := l.flows[key]
	if f == nil {
		f = &flow{key: key}
	}
	if l.exempt || l.executing < l.seats && l.waiting == 0 {
		l.flows[key] = f
		l.execute(f)
		return f, nil
	}
	if l.waiting >= l.waitLimit || len(f.waiting) >= l.flowLimit {
		l.counts.rejected++
		return nil, nil
	}
	t := &ticket{order: l.counts.arrived, admit: make(chan struct{})}
	l.flows[key] = f
	f.waiting = append(f.waiting, t)
	l.waiting++
	return f, t
}

func (l *level) execute(f *flow) {
	l.executing++
	f.executing++
	l.counts.dispatched++
}

// wait returns whether the request may execute; it may not when ctx ends before its turn.
func (l *level) wait(ctx context.Context, f *flow, t *ticket) bool {
	select {
	case <-t.admit:
		return true
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	place := slices.Index(f.waiting, t)
	if place < 0 {
		return true // its turn came at the same moment
	}
	f.waiting = slices.Delete(f.waiting, place, place+1)
	l.waiting--
	l.counts.timedOut++
	l.forget(f)
	return false
}

// leave gives the seat of a request back.
func (l *level) leave(f *flow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.executing--
	f.executing--
	l.forget(f)
	l.dispatch()
}

// forget drops a flow of which no request is here.
func (l *level) forget(f *flow) {
	if f.executing == 0 && len(f.waiting) == 0 {
		delete(l.flows, f.key)
	}
}

// dispatch lets requests go on while there are seats.
func (l *level) dispatch() {
	for l.waiting > 0 && (l.exempt || l.executing < l.seats) {
		f := l.next()
		t := f.waiting[0]
		f.waiting = f.waiting[1:]
		l.waiting--
		l.execute(f)
		close(t.admit)
	}
}

// next is the waiting flow with the fewest requests executing; of several, the one that
// has waited longest.
func (l *level) next() *flow {
	var best *flow
	for _, f := range l.flows {
		if len(f.waiting) == 0 {
			continue
		}
		if best == nil || f.executing < best.executing ||
			f.executing == best.executing && f.waiting[0].order < best.waiting[0].order {
			best = f
		}
	}
	return best
}
