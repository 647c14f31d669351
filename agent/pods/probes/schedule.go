package probes

import "time"

const (
	// settleTime is how long after its start a container may fail probes without anybody hearing of it.
	settleTime = time.Second
	// eagerTime is how long extra probes are tried, if the period is shorter.
	eagerTime = 10 * time.Second
	// eagerFirst and eagerMax bound the pause before an extra probe, which doubles; those that start a process in the
	// container are rarer.
	eagerFirst, eagerMax         = 50 * time.Millisecond, 500 * time.Millisecond
	eagerExecFirst, eagerExecMax = 250 * time.Millisecond, time.Second
)

// schedule says when to probe. Regular probes are upstream's, except that none is due before a container has had
// settleTime to listen. Between them, until something succeeds for the first time, lie extra probes, so that a start
// does not pay a whole period; their failures do not count and are not reported.
type schedule struct {
	period   time.Duration
	next     time.Time // of any probe
	due      time.Time // of the next regular probe
	eager    bool
	until    time.Time     // of the last extra probe
	delay    time.Duration // before the next extra probe
	delayMax time.Duration
}

// newSchedule has regular probes only, from due on.
func newSchedule(due time.Time, period time.Duration) *schedule {
	return &schedule{period: period, next: due, due: due}
}

// hurry adds the extra probes, from first on.
func (s *schedule) hurry(first time.Time, delay, delayMax time.Duration) {
	s.eager, s.next, s.until = true, first, first.Add(max(s.period, eagerTime))
	s.delay, s.delayMax = delay, delayMax
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
		s.next, s.delay = at, min(2*s.delay, s.delayMax)
	}
}
