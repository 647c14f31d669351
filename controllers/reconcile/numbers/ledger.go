package numbers

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Ledger has the numbers of all loops of one server. The zero value is empty and ready; a nil Ledger counts nothing.
type Ledger struct {
	// Events are counted here, for all loops together.
	Events Events
	// Scheduling is counted here, beside the scheduler's Loop.
	Scheduling Scheduling
	// Devices are counted here, beside the Loops of their controllers.
	Devices Devices

	once   sync.Once
	series *Series // see Series

	passes passes

	mu    sync.Mutex
	loops map[string]*Loop // by queue
	term  uint64           // in which the loops were begun last
}

// OfScheduling is where a scheduler counts; nil if nobody does.
func (l *Ledger) OfScheduling() *Scheduling {
	if l == nil {
		return nil
	}
	return &l.Scheduling
}

// OfDevices is where controllers of devices count; nil if nobody does.
func (l *Ledger) OfDevices() *Devices {
	if l == nil {
		return nil
	}
	return &l.Devices
}

// BeginTerm says that the loops of a term have been begun, and Term which term that was last.
func (l *Ledger) BeginTerm(term uint64) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term = term
}

// Term is that in which the loops were begun last; 0: none.
func (l *Ledger) Term() uint64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term
}

// Begin is a loop's turn from now on, which counts as busy until Started. What an earlier turn has counted goes on; what waited or failed
// then does not.
func (l *Ledger) Begin(controller, queue string) *Loop {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loops == nil {
		l.loops = map[string]*Loop{}
	}
	series := l.Series()
	loop := &Loop{
		controller: controller, queue: queue, acts: true, starts: true, passes: &l.passes,
		waited: series.waited.WithLabelValues(queue), worked: series.worked.WithLabelValues(queue),
	}
	if before := l.loops[queue]; before != nil {
		loop.inherit(before)
	}
	l.loops[queue] = loop
	return loop
}

// Reports are those of the loops that act now, by name.
func (l *Ledger) Reports(now time.Time) []Report {
	reports := []Report{}
	for _, loop := range l.all() {
		if report, acts := loop.Report(now); acts {
			reports = append(reports, report)
		}
	}
	return reports
}

// Counts are those of all loops that ever acted, by queue.
func (l *Ledger) Counts(now time.Time) []Counts {
	var counts []Counts
	for _, loop := range l.all() {
		counts = append(counts, loop.Counts(now))
	}
	return counts
}

// Busy says whether a loop starts, or a key of one waits, rests or is worked on. Keys in backoff do not count, nor those that wait for a
// loop that begins nothing. Whoever waits for quiet asks it all the time.
func (l *Ledger) Busy(held func(queue string) bool) bool {
	return slices.ContainsFunc(l.unsorted(), func(loop *Loop) bool { return loop.busy(held(loop.queue)) })
}

// all are those that ever acted, by name.
func (l *Ledger) all() []*Loop {
	loops := l.unsorted()
	slices.SortFunc(loops, func(a, b *Loop) int {
		return cmp.Or(strings.Compare(a.controller, b.controller), strings.Compare(a.queue, b.queue))
	})
	return loops
}

func (l *Ledger) unsorted() []*Loop {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.loops))
}
