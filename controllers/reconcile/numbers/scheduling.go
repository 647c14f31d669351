package numbers

import "sync"

// Result is how an attempt to schedule a pod ended.
type Result string

// The results, under upstream's names.
const (
	Scheduled     Result = "scheduled"
	Unschedulable Result = "unschedulable"
	Refused       Result = "error"
)

// Scheduling has what only a scheduler counts. The zero value is empty and ready; methods of a nil one do nothing.
type Scheduling struct {
	mu          sync.Mutex
	acted       bool
	preemptions uint64
	pending     func() map[string]int
}

// SchedulingCounts are what /metrics shows, under upstream's names.
type SchedulingCounts struct {
	// Acted tells that a scheduler has acted here.
	Acted       bool
	Preemptions uint64
	// Pending are the pods without a node, by upstream's names of queues; nil while no scheduler acts.
	Pending map[string]int
}

// Begin is a scheduler's turn from now on; pending is asked until End.
func (s *Scheduling) Begin(pending func() map[string]int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acted, s.pending = true, pending
}

// End says that the scheduler's turn is over.
func (s *Scheduling) End() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = nil
}

// Preempting counts an attempt to make room for a pod.
func (s *Scheduling) Preempting() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.preemptions++
}

// Counts are those of this moment.
func (s *Scheduling) Counts() SchedulingCounts {
	if s == nil {
		return SchedulingCounts{}
	}
	s.mu.Lock()
	counts := SchedulingCounts{Acted: s.acted, Preemptions: s.preemptions}
	pending := s.pending
	s.mu.Unlock()
	if pending != nil {
		counts.Pending = pending() // takes locks of its own
	}
	return counts
}
