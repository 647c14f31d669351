package upkeep

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/agent/base/wait"
)

const (
	// lookInterval is how often things are looked at while netlink tells of no change.
	lookInterval = 30 * time.Second
	// settleTime collects changes that come together, as those of a firewall that reloads; restTime is the least between two looks, so
	// that a machine on which something always changes is not kept busy.
	settleTime = 100 * time.Millisecond
	restTime   = 500 * time.Millisecond
	// retryInterval is the pause after something could not be looked at, or not be put back.
	retryInterval = time.Second
	// atOnceMax is how often something is put back without a pause; the pauses after that begin with pauseMin and double.
	atOnceMax = 5
	pauseMin  = time.Second
	pauseMax  = 30 * time.Second
	// contestedAfter is how often something was put back when that is told; calmTime is after how long it is forgotten.
	contestedAfter = 8
	calmTime       = 5 * time.Minute
)

// Thing is something that the node needs. Its functions are called one after the other, and those of other things never meanwhile.
type Thing struct {
	// Name is how users are told of it: "bridge setpoint0".
	Name string
	// Guards says that it keeps something shut: it comes before others.
	Guards bool
	// Whole reports whether it is as it should be; also before there is anything to hold.
	Whole func() (bool, error)
	// PutBack makes it so.
	PutBack func(context.Context) error
}

// Config of New; all fields are required.
type Config struct {
	// Changes calls wake when something may have changed, until ctx ends; [Notifications] is one.
	Changes func(ctx context.Context, wake func())
	Logger  *slog.Logger
}

// Keeper holds things. mu guards things and problems; the rest of each thing is the loop's.
type Keeper struct {
	Config
	woken    chan struct{} // holds one: more would say the same
	mu       sync.Mutex
	things   []*held
	problems []string
}

// held is a thing and what became of it.
type held struct {
	Thing
	times   int       // how often it was put back, lately
	last    time.Time // when, lately
	next    time.Time // not to be put back before
	problem string
}

// New holds nothing yet.
func New(c Config) *Keeper {
	return &Keeper{Config: c, woken: make(chan struct{}, 1)}
}

// Hold adds things. Any goroutine may call it; a nil Keeper holds nothing.
func (k *Keeper) Hold(things ...Thing) {
	if k == nil {
		return
	}
	k.mu.Lock()
	for _, t := range things {
		k.things = append(k.things, &held{Thing: t})
	}
	// Guards come first, and each in the order in which they were added.
	slices.SortStableFunc(k.things, func(a, b *held) int { return cmp.Compare(rank(a), rank(b)) })
	k.mu.Unlock()
	k.wake()
}

func rank(h *held) int {
	if h.Guards {
		return 0
	}
	return 1
}

// Problems say what cannot be put back, and what is changed again and again. A nil Keeper has none.
func (k *Keeper) Problems() []string {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.problems)
}

func (k *Keeper) wake() {
	select {
	case k.woken <- struct{}{}:
	default:
	}
}

// Run holds the things until ctx ends. They stay.
func (k *Keeper) Run(ctx context.Context) {
	var children sync.WaitGroup
	defer children.Wait()
	children.Go(func() { k.Changes(ctx, k.wake) })
	for {
		again := k.pass(ctx)
		if !wait.For(ctx, restTime) {
			return
		}
		timer := time.NewTimer(again)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-k.woken:
			wait.For(ctx, settleTime)
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// pass looks at all things once. It returns after how long it has to look again, if nothing wakes it.
func (k *Keeper) pass(ctx context.Context) (again time.Duration) {
	k.mu.Lock()
	things := slices.Clone(k.things)
	k.mu.Unlock()
	again = lookInterval
	for _, h := range things {
		whole, next := k.hold(ctx, h, time.Now())
		if again = min(again, next); !whole && h.Guards {
			break
		}
	}
	k.tell(things)
	return again
}

// hold looks at a thing, and puts it back if it has to and may. next is after how long it has to be looked at again.
func (k *Keeper) hold(ctx context.Context, h *held, now time.Time) (whole bool, next time.Duration) {
	whole, err := h.Whole()
	switch {
	case err != nil:
		k.failed(h, fmt.Sprintf("%s cannot be looked at: %v", h.Name, err))
		return false, retryInterval
	case whole:
		if now.Sub(h.last) >= calmTime {
			h.times = 0
		}
		if h.times < contestedAfter {
			h.problem = ""
		}
		return true, lookInterval
	case now.Before(h.next):
		return false, h.next.Sub(now)
	}
	if err := h.PutBack(ctx); err != nil && ctx.Err() == nil {
		k.failed(h, fmt.Sprintf("%s cannot be put back: %v", h.Name, err))
		return false, retryInterval
	}
	k.restored(h, now)
	return true, lookInterval
}

// failed says a problem once.
func (k *Keeper) failed(h *held, problem string) {
	if h.problem != problem {
		k.Logger.Warn("this machine is not as the node needs it", "problem", problem)
	}
	h.problem = problem
}

// restored counts, and says the first time and when it seems that it will go on.
func (k *Keeper) restored(h *held, now time.Time) {
	h.times++
	h.last, h.next = now, now.Add(pause(h.times))
	h.problem = ""
	if h.times >= contestedAfter {
		h.problem = h.Name + ": something else on this machine changes it again and again; it is put back at growing intervals"
	}
	switch h.times {
	case 1:
		k.Logger.Warn("something else on this machine has changed what the node needs: it is put back", "what", h.Name)
	case contestedAfter:
		k.Logger.Warn("this machine is not as the node needs it", "problem", h.problem)
	}
}

// pause is the least time until something that was put back this often may be put back again.
func pause(times int) time.Duration {
	p := pauseMin
	for range times - atOnceMax - 1 {
		p = min(2*p, pauseMax)
	}
	if times <= atOnceMax {
		return 0
	}
	return p
}

// tell publishes the problems.
func (k *Keeper) tell(things []*held) {
	var problems []string
	for _, h := range things {
		if h.problem != "" {
			problems = append(problems, h.problem)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.problems = problems
}
