package reconcile

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
)

// newQueue is a queue whose keys are counted while they wait. client-go's own metrics would wake an idle server twice a second for each
// queue.
func newQueue[K comparable](
	c clock.WithTicker, limiter workqueue.TypedRateLimiter[K], keys *waiting[K],
) workqueue.TypedRateLimitingInterface[K] {
	plain := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Clock: c, Queue: keys})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{Clock: rarely{c}, Queue: plain})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[K]{Clock: c, DelayingQueue: delaying})
}

// rarely is a clock whose tickers tick a sixth as often. A delaying queue has timers for its keys, and looks every ten seconds whether they
// missed one: over thirty queues did so at moments of their own.
type rarely struct{ clock.WithTicker }

// NewTicker implements clock.WithTicker.
func (r rarely) NewTicker(every time.Duration) clock.Ticker { return r.WithTicker.NewTicker(6 * every) }

// waiting are the keys that wait, first in, first out. The workqueue calls Touch, Push, Len and Pop under its lock.
type waiting[K comparable] struct {
	clock clock.PassiveClock
	loop  *numbers.Loop
	// came is told that a key waits, for who waits for one beside Get.
	came chan<- struct{}
	// pause is how long a pass of a key must not begin.
	pause func(key K, now time.Time) time.Duration
	keys  []K
	since []time.Time

	mu  sync.Mutex
	all map[K]wait // of the keys of which no pass has begun
}

// wait is what is known of one key.
type wait struct {
	due time.Time // when its pass might have begun at the earliest
	// added: it was counted. resting: the loop counts as busy until it is in the queue again.
	added, resting bool
}

// Touch implements workqueue.Queue: a key that waits already keeps its place.
func (w *waiting[K]) Touch(K) {}

// Push implements workqueue.Queue.
func (w *waiting[K]) Push(key K) {
	now := w.clock.Now()
	w.keys, w.since = append(w.keys, key), append(w.since, now)
	w.mu.Lock()
	defer w.mu.Unlock()
	pause, before := w.pause(key, now), w.all[key]
	add := pause <= 0 && !before.added
	w.all[key] = wait{due: now.Add(max(0, pause)), added: before.added || add}
	w.loop.Waits(now, add, before.resting)
	select {
	case w.came <- struct{}{}:
	default: // it is said already
	}
}

// Len implements workqueue.Queue.
func (w *waiting[K]) Len() int { return len(w.keys) }

// Pop implements workqueue.Queue. What is popped is to begin, or to rest.
func (w *waiting[K]) Pop() K {
	key := w.keys[0]
	w.keys[0] = *new(K) // the array behind the slice must not keep it
	w.keys, w.since = w.keys[1:], w.since[1:]
	var oldest time.Time
	if len(w.since) > 0 {
		oldest = w.since[0]
	}
	w.loop.Handed(oldest)
	return key
}

// begin says that a pass of the key begins.
func (w *waiting[K]) begin(key K, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.all[key]
	delete(w.all, key)
	w.loop.Begins(max(0, now.Sub(of.due)), !of.added)
}

// rest says that the key comes back when its pause is over; busy: the loop has something to do until then.
func (w *waiting[K]) rest(key K, busy bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.all[key]
	of.resting = busy
	w.all[key] = of
	w.loop.Rests(busy)
}
