package raftstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/forward"
)

const (
	// queueLimit is how many commands may wait to be packed; more are refused
	// with ErrOverloaded.
	queueLimit = 4096
	// eagerCommands is how many commands must wait to be sent while another batch is
	// under way. Fewer wait for its end: each batch costs every replica a commit to
	// disk, whatever it holds, so a busy or slow log gets larger batches by itself.
	eagerCommands = 64
	// batchesInFlight is how many batches may be under way.
	batchesInFlight = 4
	// lingerLimit bounds how long a batch waits for company on a slow disk.
	lingerLimit = 20 * time.Millisecond
)

// batcher packs commands that wait at the same time into batches: group commit. A
// lone writer is never kept waiting; see batchWait for many.
type batcher struct {
	ctx context.Context
	// ship sends one batch and returns one outcome for each command.
	ship  func(context.Context, []command.Command) []forward.Outcome
	queue chan *pending
	// ended gets each batch that is no longer under way, many a value when as many
	// commands wait as wanted says.
	ended  chan landing
	many   chan struct{}
	wanted atomic.Int64
	// outstanding is how many commands have no outcome yet.
	outstanding atomic.Int64
	// underWay and pacing belong to run.
	underWay int
	pacing   batchWait

	// mu orders submitting before draining.
	mu      sync.RWMutex
	drained bool
	waiting sync.WaitGroup
}

// pending is a command that waits for its outcome.
type pending struct {
	ctx     context.Context
	command command.Command
	done    chan forward.Outcome
	// finished tells the batcher that nothing is under way for it any more.
	finished func()
}

func newBatcher(ctx context.Context, ship func(context.Context, []command.Command) []forward.Outcome) *batcher {
	b := &batcher{
		ctx: ctx, ship: ship,
		queue: make(chan *pending, queueLimit),
		ended: make(chan landing, batchesInFlight),
		many:  make(chan struct{}, 1),
	}
	b.wanted.Store(eagerCommands)
	return b
}

// run packs and ships until the context ends.
func (b *batcher) run() {
	var children sync.WaitGroup
	defer children.Wait()
	var first *pending
	for {
		if first == nil {
			select {
			case first = <-b.queue:
			case <-b.ctx.Done():
			}
		}
		if first == nil || !b.takeTurn() || !b.linger() {
			b.refuse(first)
			return
		}
		var batch []*pending
		batch, first = b.gather(first)
		children.Go(func() { b.ended <- b.deliver(batch) })
	}
}

// takeTurn waits until one more batch may be under way. It returns false if the
// context ended before.
func (b *batcher) takeTurn() bool {
	for b.underWay > 0 && (b.underWay == batchesInFlight || len(b.queue) < eagerCommands) {
		select {
		case l := <-b.ended:
			b.underWay--
			b.pacing.landed(l)
		case <-b.many:
		case <-b.ctx.Done():
			return false
		}
	}
	b.underWay++
	return true
}

// linger lets a batch that is alone under way wait for the company it may expect. It
// returns false if the context ended before.
func (b *batcher) linger() bool {
	expected := b.pacing.expected(batchWaitMin)
	if b.underWay > 1 || len(b.queue)+1 >= expected {
		return true
	}
	b.wanted.Store(int64(expected) - 1)
	defer b.wanted.Store(eagerCommands)
	enough := time.NewTimer(time.Until(b.pacing.until))
	defer enough.Stop()
	for len(b.queue)+1 < expected {
		select {
		case <-b.many:
		case <-enough.C:
			return true
		case <-b.ctx.Done():
			return false
		}
	}
	return true
}

// gather takes all that wait with the first, up to the limits of a log entry. What
// no longer fits is carried over to the next batch.
func (b *batcher) gather(first *pending) (batch []*pending, carried *pending) {
	batch = []*pending{first}
	size := first.command.Size()
	for len(batch) < command.MaxCommands {
		select {
		case p := <-b.queue:
			if size += p.command.Size(); size > command.MaxBytes {
				return batch, p
			}
			batch = append(batch, p)
		default:
			return batch, nil
		}
	}
	return batch, nil
}

// deliver ships a batch without the commands whose callers gave up.
func (b *batcher) deliver(batch []*pending) landing {
	commands := make([]command.Command, 0, len(batch))
	live := batch[:0]
	for _, p := range batch {
		if err := p.ctx.Err(); err != nil {
			p.finish(forward.Outcome{Err: fmt.Errorf("%w: %w", forward.ErrNotProposed, err)})
			continue
		}
		live = append(live, p)
		commands = append(commands, p.command)
	}
	start := time.Now()
	if len(live) == 0 {
		return landing{at: start}
	}
	outcomes := b.ship(b.ctx, commands)
	l := landing{at: time.Now(), took: time.Since(start), limit: lingerLimit, together: int(b.outstanding.Load())}
	for i, outcome := range outcomes {
		live[i].finish(outcome)
	}
	return l
}

func (p *pending) finish(o forward.Outcome) {
	p.done <- o
	p.finished()
}

// refuse answers everything that waits when nothing will be shipped any more.
func (b *batcher) refuse(carried *pending) {
	stopped := forward.Outcome{Err: fmt.Errorf("%w: %w", forward.ErrNotProposed, ErrStopped)}
	if carried != nil {
		carried.finish(stopped)
	}
	for {
		select {
		case p := <-b.queue:
			p.finish(stopped)
		default:
			return
		}
	}
}

// enqueue adds a command to the queue without waiting. Errors wrap
// forward.ErrNotProposed.
func (b *batcher) enqueue(ctx context.Context, c command.Command) (*pending, error) {
	p := &pending{ctx: ctx, command: c, done: make(chan forward.Outcome, 1), finished: b.finished}
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.drained {
		return nil, fmt.Errorf("%w: %w", forward.ErrNotProposed, ErrStopped)
	}
	b.waiting.Add(1)
	b.outstanding.Add(1)
	select {
	case b.queue <- p:
		b.announce()
		return p, nil
	default:
		b.finished()
		return nil, ErrOverloaded
	}
}

func (b *batcher) finished() {
	b.outstanding.Add(-1)
	b.waiting.Done()
}

// announce wakes run when as many commands wait as it wants.
func (b *batcher) announce() {
	if int64(len(b.queue)) < b.wanted.Load() {
		return
	}
	select {
	case b.many <- struct{}{}:
	default:
	}
}

// wait returns the outcome, or the context's error while it is unknown.
func (b *batcher) wait(p *pending) (command.Result, error) {
	select {
	case o := <-p.done:
		return o.Result, o.Err
	case <-p.ctx.Done():
		return command.Result{}, p.ctx.Err()
	case <-b.ctx.Done():
		return command.Result{}, ErrStopped
	}
}

// submit enqueues a command and waits for its outcome.
func (b *batcher) submit(ctx context.Context, c command.Command) (command.Result, error) {
	p, err := b.enqueue(ctx, c)
	if err != nil {
		return command.Result{}, err
	}
	return b.wait(p)
}

// drain refuses new commands and waits until nothing is under way.
func (b *batcher) drain() {
	b.mu.Lock()
	b.drained = true
	b.mu.Unlock()
	b.waiting.Wait()
}
