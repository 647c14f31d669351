package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/controllers/reconcile/pace"
)

const (
	// DefaultWorkers is how many keys a controller handles at once when its
	// Config does not say. Writes of different keys share one group commit, so
	// more workers cost little and hide the commit's latency.
	DefaultWorkers = 8
	// RetryDelayMin is the pause after a key's first failure.
	RetryDelayMin = 5 * time.Millisecond
	// RetryDelayMax bounds the doubling pause of a key that keeps failing.
	RetryDelayMax = 5 * time.Minute
)

// Key names the object to reconcile: a namespace (empty for cluster-wide
// objects) and a name.
type Key = cache.ObjectName

// FuncOf brings one object closer to its spec. It is level-triggered: it gets a key and no event, and reads the
// current objects itself. A positive duration asks to be called again after it; an error asks for a retry with
// growing pauses.
type FuncOf[K comparable] func(ctx context.Context, key K) (again time.Duration, err error)

// The usual shapes: loops keyed by one object's name.
type (
	Func   = FuncOf[Key]
	Config = ConfigOf[Key]
	Source = SourceOf[Key]
	Feed   = FeedOf[Key]
)

// ConfigOf describes one controller's loop over keys of type K.
type ConfigOf[K comparable] struct {
	// Name is the loop's name in logs.
	Name string
	// Queue is its name in metrics and reports, upstream's where there is one; empty: Name.
	Queue string
	// Reconcile handles one key. Required.
	Reconcile FuncOf[K]
	// Sources are the informers whose events become keys.
	Sources []SourceOf[K]
	// Feeds run beside the workers and add keys for reasons that no informer
	// knows. Each must return when its context ends.
	Feeds []FeedOf[K]
	// Workers is how many keys are handled at once; 0 means DefaultWorkers.
	Workers int
	// Rests says whether the loop, or each of its keys, rests after a pass.
	Rests Rests
	// Env is the controller's: its Logger receives failures, its Clock is the queue's. Nil
	// means silence and the real clock.
	Env *Env
}

// FeedOf adds keys until its context ends.
type FeedOf[K comparable] func(ctx context.Context, add func(K))

// Once adds one key at the start: for a loop that comes back by itself.
func Once[K comparable](key K) FeedOf[K] {
	return func(_ context.Context, add func(K)) { add(key) }
}

// Run feeds the queue and works it off until ctx ends; it returns nil then,
// after all its goroutines have returned.
func Run[K comparable](ctx context.Context, cfg ConfigOf[K]) error {
	l := newLoop(cfg)
	defer l.numbers.End()
	stop, synced, err := l.subscribe()
	defer stop()
	if err != nil {
		return fmt.Errorf("%s: subscribe: %w", cfg.Name, err)
	}
	if !cache.WaitFor(ctx, "", synced...) {
		l.queue.ShutDown()
		return nil
	}
	l.work(ctx)
	return nil
}

// loop is one Run of one controller.
type loop[K comparable] struct {
	cfg     ConfigOf[K]
	log     *slog.Logger
	queue   workqueue.TypedRateLimitingInterface[K]
	limiter workqueue.TypedRateLimiter[K]
	numbers *numbers.Loop // nil if nobody counts
	gate    *pace.Gate    // nil if nobody may hold it
	waiting *waiting[K]
	came    chan struct{} // capacity 1: a key may wait
	taking  chan struct{} // capacity 1: of loops that may be held, one worker at a time takes a key
	worker  int
	rests   *rests[K]
}

func newLoop[K comparable](cfg ConfigOf[K]) *loop[K] {
	if cfg.Env == nil {
		cfg.Env = &Env{Logger: slog.New(slog.DiscardHandler), Clock: clock.RealClock{}}
	}
	l := &loop[K]{cfg: cfg, log: cfg.Env.Logger.With("controller", cfg.Name), worker: cfg.Workers, rests: newRests[K](cfg.Rests)}
	if l.worker <= 0 {
		l.worker = DefaultWorkers
	}
	queue := cmp.Or(cfg.Queue, cfg.Name)
	l.numbers, l.gate = cfg.Env.Numbers.Begin(cfg.Env.name, queue), cfg.Env.Pace.Gate(queue)
	l.limiter = workqueue.NewTypedItemExponentialFailureRateLimiter[K](RetryDelayMin, RetryDelayMax)
	l.came, l.taking = make(chan struct{}, 1), make(chan struct{}, 1)
	l.waiting = &waiting[K]{clock: cfg.Env.Clock, loop: l.numbers, came: l.came, pause: l.pause, all: map[K]wait{}}
	l.queue = newQueue(cfg.Env.Clock, l.limiter, l.waiting)
	return l
}

// subscribe connects the sources. The handlers are removed again by stop: the
// informers outlive a leadership term, the loop does not.
func (l *loop[K]) subscribe() (stop func(), synced []cache.DoneChecker, err error) {
	var undo []func()
	stop = func() {
		for _, f := range undo {
			f()
		}
	}
	for _, s := range l.cfg.Sources {
		if s.err != nil {
			l.queue.ShutDown()
			return stop, nil, s.err
		}
		reg, err := s.Informer.AddEventHandler(s.handler(l.changed))
		if err != nil {
			l.queue.ShutDown()
			return stop, nil, err
		}
		undo = append(undo, func() { _ = s.Informer.RemoveEventHandler(reg) })
		synced = append(synced, reg.HasSyncedChecker())
	}
	return stop, synced, nil
}

// changed adds a key for an event. When the key's own object is new or has a new generation, its pauses begin at
// RetryDelayMin again: that may be what a failing key waited for. Other events, such as a loop's own writes of status or
// of other objects, do not shorten the pauses, or a loop that writes before it fails would never slow down.
func (l *loop[K]) changed(key K, before, after metav1.Object) {
	own := any(key) == any(KeyOf(latest(before, after)))
	if own && (before == nil || after == nil || before.GetGeneration() != after.GetGeneration()) {
		l.queue.Forget(key)
		l.numbers.Lift(func() string { return fmt.Sprint(key) })
	}
	l.queue.Add(key)
}

// work runs the workers and feeds until ctx ends.
func (l *loop[K]) work(ctx context.Context) {
	var wg sync.WaitGroup
	for range l.worker {
		wg.Go(func() {
			for l.next(ctx) {
			}
		})
	}
	for _, feed := range l.cfg.Feeds {
		wg.Go(func() { feed(ctx, l.queue.Add) })
	}
	l.numbers.Started()
	<-ctx.Done()
	l.queue.ShutDown()
	wg.Wait()
}

// next handles one key; false means that the queue is closed.
func (l *loop[K]) next(ctx context.Context) bool {
	key, turn, ok := l.take(ctx)
	if !ok {
		return false
	}
	defer l.queue.Done(key)
	if ctx.Err() != nil {
		return true
	}
	name := func() string { return fmt.Sprint(key) }
	begun := l.cfg.Env.Now()
	if pause := l.pause(key, begun); pause > 0 {
		l.gate.Return(turn)
		// A whole loop may rest for seconds: who waits until nobody is busy does not wait for that.
		l.waiting.rest(key, l.rests.how == RestsEach && l.putOff(key, begun) <= 0)
		l.queue.AddAfter(key, pause)
		return true
	}
	done := l.numbers.Working(begun, name) // before it waits no more: it is busy all the time
	l.waiting.begin(key, begun)
	did := &tally{}
	again, err := l.call(l.withPassOf(ctx, key, name, did), key)
	ended := l.cfg.Env.Now()
	done(ended)
	l.numbers.Passed(did.of(numbers.Pass{Key: name, At: ended, Took: ended.Sub(begun), Err: err}))
	l.rests.begin(key, ended, ended.Sub(begun), err)
	l.settle(ctx, key, again, err)
	return true
}

// pause is how long a pass of the key must not begin.
func (l *loop[K]) pause(key K, now time.Time) time.Duration {
	return max(l.putOff(key, now), l.rests.left(key, now))
}

// putOff is how long a key is slowed down that writes in circles.
func (l *loop[K]) putOff(key K, now time.Time) time.Duration {
	return l.numbers.PutOff(now, func() string { return fmt.Sprint(key) })
}

// take waits until a key waits and a pass may begin; ok is false at the end. What waits for a loop that is held stays in its queue.
func (l *loop[K]) take(ctx context.Context) (key K, turn pace.Turn, ok bool) {
	if l.gate == nil {
		key, closed := l.queue.Get()
		return key, turn, !closed
	}
	l.taking <- struct{}{}
	defer func() { <-l.taking }()
	for turn, ok = l.gate.Enter(ctx); ok; turn, ok = l.gate.Enter(ctx) {
		if l.queue.Len() > 0 { // so Get does not wait
			key, closed := l.queue.Get()
			return key, turn, !closed
		}
		l.gate.Return(turn)
		select {
		case <-l.came:
		case <-ctx.Done():
			return key, turn, false
		}
	}
	return key, turn, false
}

// call runs Func and turns a panic into an error of this key.
func (l *loop[K]) call(ctx context.Context, key K) (again time.Duration, err error) {
	defer func() {
		if p := recover(); p != nil {
			l.log.Error("reconcile panicked", "key", fmt.Sprint(key), "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return l.cfg.Reconcile(ctx, key)
}

// settle decides when the key comes back.
func (l *loop[K]) settle(ctx context.Context, key K, again time.Duration, err error) {
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		l.failed(ctx, key, err)
		return
	}
	l.queue.Forget(key)
	l.numbers.Succeeded(func() string { return fmt.Sprint(key) })
	if again > 0 {
		l.numbers.Retried()
		l.queue.AddAfter(key, again)
	}
}

// failed tries a key again after a growing pause, or not, and tells of one that keeps failing.
func (l *loop[K]) failed(ctx context.Context, key K, err error) {
	tries, now, next := l.queue.NumRequeues(key)+1, l.cfg.Env.Now(), time.Time{}
	if errors.Is(err, ErrTerminal) {
		l.queue.Forget(key)
		l.log.Warn("reconcile gave up until the object changes", "key", fmt.Sprint(key), "err", err)
	} else {
		l.log.Log(ctx, levelOf(err), "reconcile failed, will retry", "key", fmt.Sprint(key), "err", err)
		pause := l.limiter.When(key)
		next = now.Add(pause)
		l.numbers.Retried()
		l.queue.AddAfter(key, pause)
	}
	if !worthTelling(err) || l.numbers == nil {
		return
	}
	if l.numbers.Failed(now, fmt.Sprint(key), tries, next, err) {
		l.tell(key, reasonFailing, "%s failed %d times in a row: %v", l.cfg.Env.name, tries, err)
	}
}

// levelOf keeps the ordinary out of the logs: a conflict is the normal way to
// learn that the plan was made from an older world, and a namespace that is
// going takes nothing new.
func levelOf(err error) slog.Level {
	if errors.Is(err, ErrStale) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}
