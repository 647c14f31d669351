package cpushare

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/internal/shares"
)

// holdMax is how long a write keeps its turn at most: what it waits for then may be somebody else, such as a webhook.
const holdMax = 5 * time.Second

// Long is a request of a tenant that may compute for long. While it does (between Begin and End) it has a turn, of which its tenant has as
// many at a time as half of the processors, and it is charged with what its thread has used. A nil Long never waits. It is for one
// goroutine at a time.
type Long struct {
	share  *Share
	holder shares.Holder
	ctx    context.Context
	most   time.Duration // how long it keeps a turn, if not 0
	leave  func()        // nil: it does not compute
	begun  time.Duration
	// holding is leave != nil, for other goroutines of the request.
	holding atomic.Bool
}

// LongKey is the key of a *Long in the context of a request.
type LongKey struct{}

// Long is for one request of the holder.
func (s *Share) Long(ctx context.Context, h shares.Holder) *Long {
	return &Long{share: s, holder: h, ctx: ctx}
}

// Compute begins a write that may take long, of the request of ctx, and returns what must be called at its end, by the same goroutine. It
// has a turn of its own, unless the request has one: upstream's handlers write in a goroutine, which may go on after the request has ended.
func Compute(ctx context.Context) (done func()) {
	l := of(ctx)
	if l == nil || l.holding.Load() {
		return func() {}
	}
	own := l.share.Long(l.ctx, l.holder)
	own.BeginWrite()
	return own.End
}

// Computed ends what may take long in the request of ctx, if it has begun: it is called by its goroutine.
func Computed(ctx context.Context) { of(ctx).End() }

func of(ctx context.Context) *Long {
	l, _ := ctx.Value(LongKey{}).(*Long)
	return l
}

// BeginWrite is Begin for what may wait for others in between: its turn ends after holdMax.
func (l *Long) BeginWrite() {
	if l != nil {
		l.most = holdMax
		l.Begin()
	}
}

// Begin waits for a turn, and with it until the tenant's time has come: requests that wait for turns have passed Wait before others of his
// have computed. Whoever goes away meanwhile goes on without one, and finds out by himself.
func (l *Long) Begin() {
	if l == nil || l.leave != nil {
		return
	}
	l.leave = l.enter()
	l.holding.Store(true)
	l.share.Spend(l.holder, 0)
	l.share.computing.Add(1)
	runtime.LockOSThread()
	l.begun = l.share.thread()
}

func (l *Long) enter() (leave func()) {
	leave, err := l.share.turns.Wait(l.ctx, l.holder)
	if err != nil {
		return func() {}
	}
	if l.most == 0 {
		return leave
	}
	once := sync.OnceFunc(leave)
	timer := time.AfterFunc(l.most, once)
	return func() {
		timer.Stop()
		once()
	}
}

// Outside runs what waits for others without the turn, such as the writing of a part of an answer.
func (l *Long) Outside(wait func()) {
	if l == nil || l.leave == nil {
		wait()
		return
	}
	leave := l.leave
	l.leave = func() {} // for End, if wait panics
	leave()
	wait()
	l.leave = l.enter()
}

// End gives the turn back, and charges what was computed.
func (l *Long) End() {
	if l == nil || l.leave == nil {
		return
	}
	spent := l.share.thread() - l.begun
	runtime.UnlockOSThread()
	l.share.computed.Store(true)
	l.share.computing.Add(-1)
	l.share.Charge(l.holder, l.share.unitsOf(spent))
	l.leave()
	l.leave = nil
	l.holding.Store(false)
}

// unitsOf says how many units take so much time of a processor.
func (s *Share) unitsOf(spent time.Duration) float64 {
	cost := time.Duration(s.cost.Load())
	if cost == 0 {
		cost = costGuess
	}
	return float64(spent) / float64(cost)
}
