package scheduler

import (
	"cmp"
	"container/heap"
	"container/list"
	"context"
	"iter"
	"math/bits"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/controllers/reconcile/pace"
	"github.com/setpoint-io/setpoint/controllers/scheduler/devices"
	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/podkey"
)

const (
	// parkedMax is after which time a parked pod is tried again even if no event came.
	parkedMax = 5 * time.Minute
	// backoffWindow: woken pods whose backoff ends within one of these are tried by priority and age. Upstream's.
	backoffWindow = time.Second
)

// queue holds the pods that wait for a node. Each pod is in exactly one place:
//
//	active    to be tried now, by priority and age
//	woken     parked before; an event came that may help. Tried when active is empty (upstream's SchedulerPopFromBackoffQ),
//	          and joins active when its backoff has passed, so that a stream of new pods cannot starve it
//	failed    the attempt failed for a reason outside of scheduling (a refused bind); tried when its backoff has passed
//	parked    fits nowhere; waits for one of its events
//	inFlight  handed out by pop, not yet given back
//
// An event that comes while a pod is in flight is not lost: the queue numbers the events, and park compares.
type queue struct {
	mu      sync.Mutex
	entries map[types.UID]*entry
	users   devices.Users[*entry]
	heaps   [inHeap]entryHeap
	parked  map[types.UID]*entry
	signal  chan struct{} // capacity 1: something may be ready
	arrival uint64
	moves   uint64 // numbers the events

	// backoffMin is the wait after the first failed attempt; it doubles with each up to backoffMax.
	backoffMin, backoffMax time.Duration

	lastOf  [plugin.EventBits]uint64 // by event bit: the number of the last one
	waiting [plugin.EventBits]int    // by event bit: how many parked pods wait for it
	numbers *numbers.Loop            // nil if nobody counts
	series  *numbers.Series
	clock   clock.WithTicker
	order   *list.List // since when the pods in active and woken wait, the oldest first
}

// whereabouts tells where an entry is.
type whereabouts int

const (
	active whereabouts = iota
	woken
	failed
	inHeap // the places before this one are heaps
	parked
	inFlight
	gone
)

// entry is one waiting pod.
type entry struct {
	pod     *plugin.Pod
	key     podkey.Key // podkey.Of the pod
	arrival uint64
	unfit   int // attempts that found no node
	tries   int // attempts in all
	where   whereabouts
	index   int          // in its heap
	ready   time.Time    // end of the backoff
	since   time.Time    // parked since
	wakes   plugin.Event // what a parked pod waits for
	popped  uint64       // queue.moves when it was handed out
	stale   bool         // the pod changed while in flight
	missed  bool         // a claim that it uses changed while in flight
	refused int          // attempts in a row that ended in retry

	waits  *list.Element       // in queue.order; nil: it is not to be tried now
	worked func(now time.Time) // ends the work on it; nil: it is not in flight
}

func newQueue(loop *numbers.Loop, series *numbers.Series, clock clock.WithTicker, backoffMin, backoffMax time.Duration) *queue {
	q := &queue{
		entries: map[types.UID]*entry{}, users: devices.Users[*entry]{}, parked: map[types.UID]*entry{}, signal: make(chan struct{}, 1),
		numbers: loop, series: series, clock: clock, order: list.New(), backoffMin: backoffMin, backoffMax: backoffMax,
	}
	for place := range q.heaps {
		q.heaps[place].byTime = whereabouts(place) != active
	}
	return q
}

// set adds a pod, or takes over its new version. A version that plugins would judge differently is tried at once.
func (q *queue) set(object *corev1.Pod) {
	key := podkey.Of(object)
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries[object.UID]
	if e == nil {
		q.arrival++
		e = &entry{pod: plugin.NewPod(object), key: key, arrival: q.arrival}
		q.entries[object.UID] = e
		q.users.Add(e.pod.Pod, e)
		q.put(e, active, podAdded)
		return
	}
	same := e.key == key
	pod := plugin.NewPod(object)
	if same {
		e.pod = pod
		return
	}
	where := q.take(e)
	q.users.Remove(e.pod.Pod)
	e.pod, e.key = pod, key
	q.users.Add(e.pod.Pod, e)
	if where == inFlight {
		e.where, e.stale = inFlight, true
		return
	}
	q.put(e, active, podUpdated)
}

// has tells whether the pod waits here or is in flight.
func (q *queue) has(uid types.UID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.entries[uid] != nil
}

// remove forgets a pod: it is gone, bound, or no longer ours. A pod in flight is dropped when it comes back.
func (q *queue) remove(uid types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.entries[uid]; e != nil {
		q.take(e)
		q.drop(e)
	}
}

// task is one attempt to place a pod: the entry in flight and the pod as it was when it was handed out.
type task struct {
	entry *entry
	pod   *plugin.Pod
	key   podkey.Key
	tries int // attempts, with this one
	begun time.Time
	pass  *reconcile.Attempt // what is written for it; nil: nobody counts
}

// profile is the name of the one by which the pod is placed.
func (t task) profile() string { return t.pod.Spec.SchedulerName }

// pop waits for the next pod and hands it out. It reports false when ctx has ended.
func (q *queue) pop(ctx context.Context, gate *pace.Gate) (task, bool) {
	for turn, ok := gate.Enter(ctx); ok; turn, ok = gate.Enter(ctx) {
		t, wait := q.next(q.clock.Now())
		if t.entry != nil {
			return t, true
		}
		gate.Return(turn)
		q.sleep(ctx, wait)
	}
	return task{}, false
}

// next gives the next pod, or how long there surely is none; 0 means until signalled.
func (q *queue) next(now time.Time) (task, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ripen(woken, now)
	wait := q.ripen(failed, now)
	for _, place := range []whereabouts{active, woken} {
		if e := q.heaps[place].first(); e != nil {
			q.take(e)
			e.where, e.popped, e.stale, e.missed = inFlight, q.moves, false, false
			e.tries++
			q.count(e)
			if place == woken {
				q.came(active, backoffEnded)
			}
			return task{entry: e, pod: e.pod, key: e.key, tries: e.tries, begun: time.Now()}, 0
		}
	}
	return task{}, wait
}

// ripen moves the pods whose backoff has passed to active, and tells how long the first of the others has to wait.
func (q *queue) ripen(place whereabouts, now time.Time) time.Duration {
	for e := q.heaps[place].first(); e != nil; e = q.heaps[place].first() {
		if wait := e.ready.Sub(now); wait > 0 {
			return wait
		}
		q.take(e)
		q.put(e, active, backoffOver)
	}
	return 0
}

func (q *queue) sleep(ctx context.Context, wait time.Duration) {
	var expired <-chan time.Time
	if wait > 0 {
		timer := q.clock.NewTimer(wait)
		defer timer.Stop()
		expired = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-q.signal:
	case <-expired:
	}
}

// park gives back a pod that fits nowhere until one of the events happens. If one happened while it was in flight it is
// woken at once.
func (q *queue) park(e *entry, wakes plugin.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.returned(e) {
		return
	}
	q.succeeded(e)
	now := q.clock.Now()
	e.unfit++
	e.wakes, e.since, e.ready = wakes, now, now.Add(q.backoff(e.unfit)).Truncate(backoffWindow).Add(backoffWindow)
	switch {
	case e.stale:
		q.put(e, active, podUpdated)
	case e.missed || q.happenedSince(e.popped, wakes):
		q.put(e, woken, attemptFailed)
	default:
		q.put(e, parked, attemptFailed)
	}
}

// retry gives back a pod whose attempt failed for a reason that only time may heal. tries says how often it did in a row,
// tell whether people should hear of it.
func (q *queue) retry(e *entry, err error) (tries int, tell bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.returned(e) {
		return 0, false
	}
	now := q.clock.Now()
	e.refused++
	e.ready = now.Add(q.backoff(e.refused))
	q.put(e, failed, attemptFailed)
	q.numbers.Retried()
	return e.refused, q.numbers.Failed(now, e.name(), e.refused, e.ready, err)
}

// done gives back a pod that is bound.
func (q *queue) done(e *entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.returned(e) {
		q.drop(e)
	}
}

// returned tells whether an entry in flight is still wanted.
func (q *queue) returned(e *entry) bool {
	return q.entries[e.pod.UID] == e && e.where == inFlight
}

// wake moves the parked pods that one of the events may help.
func (q *queue) wake(events plugin.Event) {
	if events == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.moves++
	concerned := 0
	for bit := range eventBits(events) {
		q.lastOf[bit] = q.moves
		concerned += q.waiting[bit]
	}
	if concerned == 0 {
		return // the usual case, and each binding is an event: thousands of parked pods need not be asked
	}
	for _, e := range q.parked {
		if help := e.wakes & events; help != 0 {
			q.take(e)
			q.put(e, woken, help.Cause())
		}
	}
}

// wakeUsers moves the parked pods that use a claim and wait for devices. One in flight is tried again if it finds no node.
func (q *queue) wakeUsers(claim types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range q.users[claim] {
		switch {
		case e.where == inFlight:
			e.missed = true
		case e.where == parked && e.wakes&plugin.DevicesChanged != 0:
			q.take(e)
			q.put(e, woken, plugin.DevicesChanged.Cause())
		}
	}
}

// flush wakes the pods that have been parked for parkedMax: a net below the events, should one ever be missing.
func (q *queue) flush(now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range q.parked {
		if now.Sub(e.since) >= parkedMax {
			q.take(e)
			q.put(e, woken, parkedTooLong)
		}
	}
}

func (q *queue) happenedSince(move uint64, events plugin.Event) bool {
	for bit := range eventBits(events) {
		if q.lastOf[bit] > move {
			return true
		}
	}
	return false
}

// eventBits gives the positions of the events in the set.
func eventBits(events plugin.Event) iter.Seq[int] {
	return func(yield func(int) bool) {
		for rest := uint(events); rest != 0; rest &= rest - 1 {
			if !yield(bits.TrailingZeros(rest)) {
				return
			}
		}
	}
}

// take removes the entry from wherever it is and tells where that was.
func (q *queue) take(e *entry) whereabouts {
	switch {
	case e.where < inHeap:
		heap.Remove(&q.heaps[e.where], e.index)
	case e.where == parked:
		delete(q.parked, e.pod.UID)
		q.countWaiting(e, -1)
	}
	return e.where
}

// drop forgets an entry that was taken, or is in flight.
func (q *queue) drop(e *entry) {
	delete(q.entries, e.pod.UID)
	q.users.Remove(e.pod.Pod)
	e.where = gone
	q.count(e)
	q.succeeded(e)
}

func (q *queue) put(e *entry, where whereabouts, cause string) {
	e.where = where
	q.count(e)
	q.came(where, cause)
	if where == parked {
		q.parked[e.pod.UID] = e
		q.countWaiting(e, 1)
		return
	}
	heap.Push(&q.heaps[where], e)
	select {
	case q.signal <- struct{}{}:
	default: // a signal is waiting already
	}
}

func (q *queue) countWaiting(e *entry, n int) {
	for bit := range eventBits(e.wakes) {
		q.waiting[bit] += n
	}
}

// backoff is how long a pod waits after so many attempts.
func (q *queue) backoff(attempts int) time.Duration {
	wait := q.backoffMin
	for range attempts - 1 {
		if wait *= 2; wait >= q.backoffMax {
			return q.backoffMax
		}
	}
	return wait
}

// entryHeap orders entries by the end of their backoff, or by priority and age.
type entryHeap struct {
	byTime bool
	list   []*entry
}

func (h *entryHeap) first() *entry {
	if len(h.list) == 0 {
		return nil
	}
	return h.list[0]
}

// Len is part of heap.Interface.
func (h *entryHeap) Len() int { return len(h.list) }

// Less is part of heap.Interface.
func (h *entryHeap) Less(i, j int) bool {
	a, b := h.list[i], h.list[j]
	if h.byTime && !a.ready.Equal(b.ready) {
		return a.ready.Before(b.ready)
	}
	return older(a, b) < 0
}

func older(a, b *entry) int {
	return cmp.Or(
		cmp.Compare(b.pod.Priority(), a.pod.Priority()),
		a.pod.CreationTimestamp.Compare(b.pod.CreationTimestamp.Time),
		cmp.Compare(a.arrival, b.arrival))
}

// Swap is part of heap.Interface.
func (h *entryHeap) Swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	h.list[i].index, h.list[j].index = i, j
}

// Push is part of heap.Interface.
func (h *entryHeap) Push(x any) {
	e := x.(*entry)
	e.index = len(h.list)
	h.list = append(h.list, e)
}

// Pop is part of heap.Interface.
func (h *entryHeap) Pop() any {
	last := len(h.list) - 1
	e := h.list[last]
	h.list[last] = nil
	h.list = h.list[:last]
	return e
}
