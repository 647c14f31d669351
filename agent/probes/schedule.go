package probes

import "time"

// eagerFirst is the pause before the first extra probe; each later one is twice
// as long.
const eagerFirst = 50 * time.Millisecond

// schedule says when to probe. A server needs some milliseconds to listen, and
// a first probe that comes too early would cost a whole period of readiness.
// So during the first period, until something succeeds, extra probes lie
// between the regular ones; their failures do not count and are not reported.
type schedule struct {
	period time.Duration
	next   time.Time // of any probe
	due    time.Time // of the next regular probe
	eager  bool
	until  time.Time // of the last extra probe
	delay  time.Duration
}

func newSchedule(first time.Time, period time.Duration, eager bool) *schedule {
	return &schedule{period: period, next: first, due: first, eager: eager, until: first.Add(period), delay: eagerFirst}
}

// extra reports whether the probe at next is not a regular one.
func (s *schedule) extra() bool { return s.next.Before(s.due) }

// advance moves next after a probe that ended at end. Regular probes that were
// missed are not made up for.
func (s *schedule) advance(ok bool, end time.Time) {
	if !s.extra() {
		s.due = s.due.Add(s.period)
	} else if ok {
		s.due = end.Add(s.period)
	}
	if s.due.Before(end) {
		s.due = end
	}
	s.eager = s.eager && !ok && end.Before(s.until)
	s.next = s.due
	if at := end.Add(s.delay); s.eager && at.Before(s.due) {
		s.next, s.delay = at, 2*s.delay
	}
}
