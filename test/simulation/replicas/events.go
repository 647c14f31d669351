package replicas

import (
	"container/heap"
	"sync"
	"time"
)

// note writes into the trace.
type note func(format string, args ...any)

// event is something that happens at a time, on the goroutine that drives the world.
type event struct {
	at     time.Time
	number uint64
	do     func(note)
}

// events are what is to come, in the order of their times, and of their making where these are the same.
type events struct {
	mu     sync.Mutex
	heap   eventHeap
	number uint64
	// added has a message when one was added.
	added chan struct{}
}

func newEvents() *events { return &events{added: make(chan struct{}, 1)} }

func (e *events) add(at time.Time, do func(note)) {
	e.mu.Lock()
	e.number++
	heap.Push(&e.heap, event{at, e.number, do})
	e.mu.Unlock()
	select {
	case e.added <- struct{}{}:
	default:
	}
}

// next returns when the next one is.
func (e *events) next() (time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.heap) == 0 {
		return time.Time{}, false
	}
	return e.heap[0].at, true
}

// take returns the first one, if its time has come.
func (e *events) take() (event, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.heap) == 0 || e.heap[0].at.After(time.Now()) {
		return event{}, false
	}
	return heap.Pop(&e.heap).(event), true
}

// await waits for the time, or until an event was added.
func (e *events) await(until time.Time) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.added:
	}
}

type eventHeap []event

// Len implements sort.Interface.
func (h eventHeap) Len() int { return len(h) }

// Less implements sort.Interface.
func (h eventHeap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].number < h[j].number
}

// Swap implements sort.Interface.
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *eventHeap) Push(x any) { *h = append(*h, x.(event)) }

// Pop implements heap.Interface.
func (h *eventHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
