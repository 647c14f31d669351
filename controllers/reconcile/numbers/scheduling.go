package numbers

import (
	"maps"
	"sync"
	"time"
)

// AttemptBounds are the upper bounds of an Attempts' buckets in seconds, upstream's for attempts to schedule a pod.
var AttemptBounds = [...]float64{
	0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384,
}

// Result is how an attempt to schedule a pod ended.
type Result string

// The results, under upstream's names.
const (
	Scheduled     Result = "scheduled"
	Unschedulable Result = "unschedulable"
	Refused       Result = "error"
)

// Attempts are those that ended with one result, and how long they took.
type Attempts struct {
	Count uint64
	Sum   time.Duration
	// UpTo are how many took at most as long as each of AttemptBounds.
	UpTo [len(AttemptBounds)]uint64
}

// Scheduling has what only a scheduler counts. The zero value is empty and ready; methods of a nil one do nothing.
type Scheduling struct {
	mu          sync.Mutex
	acted       bool
	attempts    map[string]map[Result]Attempts // by profile
	preemptions uint64
	pending     func() map[string]int
}

// SchedulingCounts are what /metrics shows, under upstream's names.
type SchedulingCounts struct {
	// Acted tells that a scheduler has acted here.
	Acted bool
	// Attempts are those of each profile, by its schedulerName.
	Attempts    map[string]map[Result]Attempts
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

// Attempted counts an attempt to place a pod by a profile that ended.
func (s *Scheduling) Attempted(profile string, result Result, took time.Duration) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attempts == nil {
		s.attempts = map[string]map[Result]Attempts{}
	}
	if s.attempts[profile] == nil {
		s.attempts[profile] = map[Result]Attempts{}
	}
	a := s.attempts[profile][result]
	a.Count++
	a.Sum += took
	for i := len(AttemptBounds) - 1; i >= 0 && took.Seconds() <= AttemptBounds[i]; i-- {
		a.UpTo[i]++
	}
	s.attempts[profile][result] = a
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
	counts := SchedulingCounts{Acted: s.acted, Attempts: map[string]map[Result]Attempts{}, Preemptions: s.preemptions}
	for profile, attempts := range s.attempts {
		counts.Attempts[profile] = maps.Clone(attempts)
	}
	pending := s.pending
	s.mu.Unlock()
	if pending != nil {
		counts.Pending = pending() // takes locks of its own
	}
	return counts
}
