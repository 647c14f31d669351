package cpushare

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/internal/clip"
	"github.com/setpoint-io/setpoint/internal/shares"
)

const (
	// burst is how much time, at its price, a tenant may use at once before it waits.
	burst = 5 * time.Millisecond
	// tick is when those who wait go on, all whose time has come together: what comes together costs less, as the entries of the log that
	// are written at once. Whoever else asks then waits for as much of it as their share is.
	tick = 5 * time.Millisecond
	// waitMax is how long a request may wait, waitingMax how many of one tenant wait at a time: about 80 MB of stacks and headers.
	waitMax, waitingMax = time.Second, 4000
	// waitingAllMax is how many of all tenants wait.
	waitingAllMax = 12_000
	// youngMax is how long what a connection brings first waits at most: whoever has the same address as a stranger that floods comes in.
	youngMax = 300 * time.Millisecond
	// debtMax is how far ahead a tenant can be charged: then what it has used too much is forgotten.
	debtMax = 2 * waitMax
	// unitBytes of a connection are a unit.
	unitBytes = 1 << 10
	// pressingPart of its share is what a tenant has used that would take more.
	pressingPart = 0.8
	// nameBytesMax is how much of a tenant's name a refusal repeats.
	nameBytesMax = 128
)

// Share is the processor time of this process.
type Share struct {
	// units are used since the last look, in thousandths.
	units atomic.Int64
	// price is what a unit of a tenant costs, in nanoseconds; 0: nobody waits.
	price atomic.Int64
	// begun is when it was made, and due how long after that to look again, in nanoseconds: clocks are set back.
	begun time.Time
	due   atomic.Int64
	// cost is what a unit takes of one processor, in nanoseconds; 0: not known.
	cost atomic.Int64
	// computing are those that compute for long, and computed says that one has ended since the last look.
	computing atomic.Int64
	computed  atomic.Bool
	// turns are theirs, and thread is the processor time of the calling thread.
	turns  *shares.Turns
	thread func() time.Duration

	// sample is of this process, read by who has looking.
	sample  func() Sample
	looking sync.Mutex

	mu      sync.Mutex
	meter   meter
	tenants map[string]*tenant
	waiting int // of all
	// strangers are those who took all of their part of the strangers' share in the last period.
	strangers int
	stats     stats
}

// tenant is who waits, or has used something lately.
type tenant struct {
	free    time.Time // from when it may go on
	waiting int
	units   float64 // in this period
	// stranger: all such share what the tenant together has.
	stranger bool
}

// stats are counts since the start, but for tenants: how many took all that they got in the last period.
type stats struct {
	tenants         int
	waited, refused uint64
}

// New divides the processors that Go uses, or as many as samples say, which are of this process. They are read ten times a second at
// most, never two at a time.
func New(sample func() Sample) *Share {
	processors := runtime.GOMAXPROCS(0)
	s := &Share{sample: sample, meter: newMeter(sample(), processors), tenants: map[string]*tenant{}, thread: usedByThread}
	s.turns = shares.NewTurns(shares.Limits{All: math.MaxInt, Each: max(1, processors/2)})
	s.begun = time.Now()
	s.due.Store(int64(period))
	return s
}

// BusyError is why a request was refused.
type BusyError struct {
	Tenant string
	// Parts is into how many parts the time is divided; the tenant has one of them.
	Parts int
}

// Error implements error.
func (e *BusyError) Error() string {
	return fmt.Sprintf("the processors of this server are busy, and %s uses its share of them, one part of %d",
		clip.Text(e.Tenant, nameBytesMax), e.Parts)
}

// Wait lets a request that costs units go on when the holder's time has come. The error is that of ctx, or a *BusyError.
func (s *Share) Wait(ctx context.Context, h shares.Holder, units float64) error {
	if s.open(h, units) {
		return nil
	}
	if err := s.waitFor(ctx, h, units); err != nil {
		return err
	}
	return s.waitTogether(ctx, h, units)
}

func (s *Share) waitFor(ctx context.Context, h shares.Holder, units float64) error {
	t, delay, err := s.enter(h, units)
	if t == nil {
		return err
	}
	defer s.leave(t)
	timer := time.NewTimer(min(delay, waitMax))
	defer timer.Stop()
	select {
	case <-timer.C:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Charge adds units to what a request or connection of the holder has cost: what comes next waits for it.
func (s *Share) Charge(h shares.Holder, units float64) {
	if s.open(h, units) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.use(s.tenant(h), time.Now(), units)
	if h.Stranger {
		s.use(s.tenant(together), time.Now(), units)
	}
}

// Read charges the holder with bytes that came in on a connection, and returns when its time has come, or after waitMax; for a young
// connection, after youngMax. It is for what clients can make a server do below HTTP. What comes in for privileged holders is not counted:
// much of it is the log's, which costs little, so that a unit would seem cheap.
func (s *Share) Read(h shares.Holder, bytes int, young bool) {
	if units := float64(bytes) / unitBytes; !h.Privileged && !s.open(h, units) {
		most := waitMax
		if young {
			most = youngMax
		}
		wait := s.owe(h, units, most)
		time.Sleep(wait)
		s.sleepTogether(h, units, most-wait)
	}
}

// Spend charges the holder with units of what cannot be refused, and returns when its time has come, or after waitMax.
func (s *Share) Spend(h shares.Holder, units float64) {
	if !s.open(h, units) {
		wait := s.owe(h, units, waitMax)
		time.Sleep(wait)
		s.sleepTogether(h, units, waitMax-wait)
	}
}

// owe charges what nobody can refuse, and returns how long to wait before it, at most so long.
func (s *Share) owe(h shares.Holder, units float64, most time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, now := s.tenant(h), time.Now()
	delay := t.delay(now)
	s.use(t, now, units)
	return min(delay, most)
}

// open counts units, and says whether the holder need not wait: nobody must, or he never does.
func (s *Share) open(h shares.Holder, units float64) bool {
	s.units.Add(int64(units * 1000))
	if now := time.Now(); int64(now.Sub(s.begun)) >= s.due.Load() {
		s.look(now)
	}
	return h.Privileged || s.price.Load() == 0
}

// enter charges a request. If it has to wait, its tenant is returned, and for how long. One that is refused is charged and waits as well,
// so that refusals do not keep the processors busy, unless too many wait already.
func (s *Share) enter(h shares.Holder, units float64) (*tenant, time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, now := s.tenant(h), time.Now()
	delay := t.delay(now)
	s.use(t, now, units)
	switch {
	case delay <= 0:
		return nil, 0, nil
	case t.waiting >= waitingMax || s.waiting >= waitingAllMax:
		return nil, 0, s.refuse(h)
	}
	t.waiting++
	s.waiting++
	if delay > waitMax {
		return t, delay, s.refuse(h)
	}
	s.stats.waited++
	return t, delay, nil
}

func (s *Share) refuse(h shares.Holder) error {
	s.stats.refused++
	return &BusyError{Tenant: h.Name, Parts: max(1, s.stats.tenants) + 1}
}

func (s *Share) leave(t *tenant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.waiting--
	s.waiting--
}

func (s *Share) tenant(h shares.Holder) *tenant {
	t := s.tenants[h.Name]
	if t == nil {
		t = &tenant{stranger: h.Stranger}
		s.tenants[h.Name] = t
	}
	return t
}

// delay is how long a request has to wait now.
func (t *tenant) delay(now time.Time) time.Duration {
	if t.free.Before(now.Add(burst)) {
		return 0
	}
	return t.free.Add(-burst).Truncate(tick).Add(tick).Sub(now)
}

// use moves on from when the tenant may go on.
func (s *Share) use(t *tenant, now time.Time, units float64) {
	if t.free.Before(now) {
		t.free = now
	}
	price := float64(s.price.Load())
	if t.stranger {
		price *= float64(max(1, s.strangers) + 1)
	}
	t.free = t.free.Add(time.Duration(units * price))
	if most := now.Add(debtMax); t.free.After(most) {
		t.free = most
	}
	t.units += units
}

// look sets the price anew, and forgets tenants that nothing is to be known of. Whoever comes meanwhile goes by the old one.
func (s *Share) look(now time.Time) {
	if !s.looking.TryLock() {
		return
	}
	defer s.looking.Unlock()
	if int64(now.Sub(s.begun)) < s.due.Load() {
		return // somebody else was first
	}
	sample := s.sample()
	s.mu.Lock()
	defer s.mu.Unlock()
	long := s.computed.Swap(false) || s.computing.Load() > 0
	all, cost := s.meter.look(now, sample, float64(s.units.Swap(0))/1000, !long)
	s.cost.Store(int64(s.meter.cost))
	s.stats.tenants, s.strangers = s.divide(all)
	for name, t := range s.tenants {
		if t.units == 0 && t.waiting == 0 && t.free.Before(now) {
			delete(s.tenants, name)
		}
		t.units = 0
	}
	s.price.Store(int64(cost) * int64(max(1, s.stats.tenants)+1))
	s.due.Store(int64(now.Add(period).Sub(s.begun)))
}

// pressing is how many tenants take as much as they get: the most of whom each has used about its share if so many do.
func pressing(units []float64, all float64) int {
	slices.SortFunc(units, func(a, b float64) int { return cmp.Compare(b, a) })
	for n := len(units); n > 0 && all > 0; n-- {
		if units[n-1] >= pressingPart*all/float64(n+1) {
			return n
		}
	}
	return 0
}
