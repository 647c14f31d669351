package flowcontrol

import (
	"cmp"
	"context"
	"slices"
	"sync"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/setpoint-io/setpoint/internal/shares"
)

// tenantFactor bounds one tenant: he gets another seat, or place to wait, if he then has no more of them than this many
// times what was free. So he leaves an eighth of a level to others, also if all his requests take as long as a request
// may; fewer than eight seats may be all his. A list takes several seats at once, and so may take some of that eighth.
const tenantFactor = 7

// level is where requests of one priority execute and wait. It is safe for concurrent use.
type level struct {
	name string

	mu     sync.Mutex
	exempt bool
	// seats execute at once; waitLimit requests may wait, flowLimit of them of one flow.
	seats, waitLimit, flowLimit int
	// executing requests hold taken seats.
	executing, taken, waiting int
	flows                     map[flowKey]*flow   // those with a request here
	tenants                   map[flowKey]*tenant // that several flows may have
	counts                    counts
}

// flowKey names a flow: requests of one schema that are not told apart.
type flowKey struct{ schema, distinguisher string }

// flow is one client's, as far as the schema can tell.
type flow struct {
	key     flowKey
	tenant  *tenant // own, or one that it has together with other flows
	own     tenant
	taken   int // seats that its executing requests hold
	waiting []*ticket
}

// tenant is whoever has several flows: the service accounts of a namespace are one, everybody else is another one in each flow.
type tenant struct {
	key                   flowKey
	flows, taken, waiting int
}

// grant is what an executing request holds until it leaves.
type grant struct {
	flow  *flow
	seats int
}

// ticket is a request that waits. Its channel is closed when it may execute.
type ticket struct {
	order uint64 // of its arrival
	width int    // seats that it wants
	admit chan grant
}

// counts since the server started.
type counts struct{ dispatched, rejected, timedOut, arrived uint64 }

func newLevel(name string) *level {
	return &level{name: name, flows: map[flowKey]*flow{}, tenants: map[flowKey]*tenant{}}
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

// take waits for the turn of a request that wants width seats, or all there are. It returns
// false if that does not come.
func (l *level) take(ctx context.Context, key flowKey, width int, watch bool) (grant, bool) {
	g, f, t := l.enter(key, width)
	if t == nil {
		return g, g.flow != nil
	}
	ctx, cancel := waitContext(ctx, watch)
	defer cancel()
	return l.wait(ctx, f, t)
}

// enter grants a request that may execute now its seats. One that has to wait gets its flow
// and a ticket; one that is refused gets nothing.
func (l *level) enter(key flowKey, width int) (grant, *flow, *ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.arrived++
	f := l.flow(key)
	if l.waiting == 0 && l.hasRoom(width) && l.mayHaveMore(f.tenant) {
		return l.execute(f, width), f, nil
	}
	if len(f.waiting) >= l.flowLimit || !(shares.Limits{All: l.waitLimit, Factor: tenantFactor}).Fits(f.tenant.waiting, l.waiting, 1) {
		l.counts.rejected++
		l.forget(f)
		return grant{}, nil, nil
	}
	t := &ticket{order: l.counts.arrived, width: width, admit: make(chan grant, 1)}
	f.waiting = append(f.waiting, t)
	f.tenant.waiting++
	l.waiting++
	l.dispatch() // all who wait already may have their share
	return grant{}, f, t
}

// flow finds or makes the one of a key. It is forgotten again if nothing comes of it.
func (l *level) flow(key flowKey) *flow {
	if f := l.flows[key]; f != nil {
		return f
	}
	f := &flow{key: key}
	f.tenant = l.tenantOf(f)
	f.tenant.flows++
	l.flows[key] = f
	return f
}

// tenantOf is the flow's own, unless others share it: nothing else is made for most requests.
func (l *level) tenantOf(f *flow) *tenant {
	of := f.key.tenant()
	if of == f.key {
		return &f.own
	}
	t := l.tenants[of]
	if t == nil {
		t = &tenant{key: of}
		l.tenants[of] = t
	}
	return t
}

// mayHaveMore says whether a tenant may have another seat, if there is one.
func (l *level) mayHaveMore(t *tenant) bool {
	return l.exempt || t.taken == 0 || shares.Limits{All: l.seats, Factor: tenantFactor}.Fits(t.taken, l.taken, 1)
}

// hasRoom: a request that wants more seats than there are gets all of them.
func (l *level) hasRoom(width int) bool {
	return l.exempt || l.seats > 0 && l.taken+min(width, l.seats) <= l.seats
}

func (l *level) execute(f *flow, width int) grant {
	g := grant{f, max(1, min(width, l.seats))}
	l.executing++
	l.taken += g.seats
	f.taken += g.seats
	f.tenant.taken += g.seats
	l.counts.dispatched++
	return g
}

// wait returns whether the request may execute; it may not when ctx ends before its turn.
func (l *level) wait(ctx context.Context, f *flow, t *ticket) (grant, bool) {
	select {
	case g := <-t.admit:
		return g, true
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	place := slices.Index(f.waiting, t)
	if place < 0 {
		return <-t.admit, true // its turn came at the same moment
	}
	f.waiting = slices.Delete(f.waiting, place, place+1)
	f.tenant.waiting--
	l.waiting--
	l.counts.timedOut++
	l.forget(f)
	l.dispatch() // who waited behind it may want fewer seats
	return grant{}, false
}

// leave gives the seats of a request back.
func (l *level) leave(g grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.executing--
	l.taken -= g.seats
	g.flow.taken -= g.seats
	g.flow.tenant.taken -= g.seats
	l.forget(g.flow)
	l.dispatch()
}

// forget drops a flow of which no request is here, and its tenant with the last one.
func (l *level) forget(f *flow) {
	if f.taken > 0 || len(f.waiting) > 0 {
		return
	}
	delete(l.flows, f.key)
	if f.tenant.flows--; f.tenant.flows == 0 {
		delete(l.tenants, f.tenant.key)
	}
}

// dispatch lets requests go on while there are seats for the next.
func (l *level) dispatch() {
	for l.waiting > 0 {
		f := l.next()
		if f == nil || !l.hasRoom(f.waiting[0].width) {
			return // nobody overtakes whose turn it is: a wide request would wait for ever
		}
		t := f.waiting[0]
		f.waiting = f.waiting[1:]
		f.tenant.waiting--
		l.waiting--
		t.admit <- l.execute(f, t.width)
	}
}

// next is the waiting flow of the tenant with the fewest seats taken; of his flows, and of such tenants', the one with
// the fewest seats, and then the one that has waited longest. It is nil if all who wait have their share.
func (l *level) next() *flow {
	var best *flow
	for _, f := range l.flows {
		if len(f.waiting) > 0 && l.mayHaveMore(f.tenant) && (best == nil || f.before(best)) {
			best = f
		}
	}
	return best
}

func (f *flow) before(other *flow) bool {
	return cmp.Or(
		cmp.Compare(f.tenant.taken, other.tenant.taken), cmp.Compare(f.taken, other.taken),
		cmp.Compare(f.waiting[0].order, other.waiting[0].order),
	) < 0
}
