package reconcile

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
)

// newQueue is a queue whose keys are counted while they wait. client-go's own metrics would wake an idle server twice a second for each
// queue. Who waits for a key beside Get is told by came.
func newQueue[K comparable](
	c clock.WithTicker, limiter workqueue.TypedRateLimiter[K], loop *numbers.Loop, came chan<- struct{},
) workqueue.TypedRateLimitingInterface[K] {
	plain := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Clock: c, Queue: &waiting[K]{clock: c, loop: loop, came: came}})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{Clock: rarely{c}, Queue: plain})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[K]{Clock: c, DelayingQueue: delaying})
}

// rarely is a clock whose tickers tick a sixth as often. A delaying queue has timers for its keys, and looks every ten seconds whether they
// missed one: over thirty queues did so at moments of their own.
type rarely struct{ clock.WithTicker }

// NewTicker implements clock.WithTicker.
func (r rarely) NewTicker(every time.Duration) clock.Ticker { return r.WithTicker.NewTicker(6 * every) }

// waiting are the keys that wait, first in, first out. The workqueue calls it under its lock.
type waiting[K comparable] struct {
	clock clock.PassiveClock
	loop  *numbers.Loop
	came  chan<- struct{}
	keys  []K
	since []time.Time
}

// Touch implements workqueue.Queue: a key that waits already keeps its place.
func (w *waiting[K]) Touch(K) {}

// Push implements workqueue.Queue.
func (w *waiting[K]) Push(key K) {
	now := w.clock.Now()
	w.keys, w.since = append(w.keys, key), append(w.since, now)
	w.loop.Queued(now)
	select {
	case w.came <- struct{}{}:
	default: // it is said already
	}
}

// Len implements workqueue.Queue.
func (w *waiting[K]) Len() int { return len(w.keys) }

// Pop implements workqueue.Queue.
func (w *waiting[K]) Pop() K {
	key, since := w.keys[0], w.since[0]
	w.keys[0] = *new(K) // the array behind the slice must not keep it
	w.keys, w.since = w.keys[1:], w.since[1:]
	var oldest time.Time
	if len(w.since) > 0 {
		oldest = w.since[0]
	}
	w.loop.Taken(w.clock.Since(since), oldest)
	return key
}
